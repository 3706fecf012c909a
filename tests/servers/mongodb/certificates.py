"""Certificates for a test server: an authority, one certificate for 127.0.0.1, one for a client."""

from __future__ import annotations

from pathlib import Path

import trustme


class Certificates:
    """Files in a folder: `authority` is what clients trust, `server` and `client` are a key and a certificate each."""

    def __init__(self, folder: Path) -> None:
        self.authority, self.server, self.client = (
            folder / f"{name}.pem" for name in ("authority", "server", "client")
        )
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self.authority))
        authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(str(self.server))
        client = authority.issue_cert(common_name="client", organization_unit_name="applications")
        client.private_key_and_cert_chain_pem.write_to_path(str(self.client))
