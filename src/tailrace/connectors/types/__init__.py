"""Types that every connector shares: Connect schemas by configuration, and conversions of Arrow columns."""
