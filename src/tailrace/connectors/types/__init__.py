"""Types that every connector shares: their Connect schemas by configuration, and conversions over Arrow columns."""
