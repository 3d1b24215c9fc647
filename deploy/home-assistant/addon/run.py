"""Starts the collector as a Home Assistant add-on: its options are in /data, the site file and its plan in /config."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(os.environ.get("ADDON_ROOT", "/"))
DATA, CONFIG = ROOT / "data", ROOT / "config"
NAME = os.environ.get("HOSTNAME", "local-cloakwork").replace("-", "_")  # of the add-on, as in its address
# the port is not published: Home Assistant's proxy reaches it, asks for an account, and has the certificate if any
SERVED = ["--listen", "0.0.0.0:8080", "--private-network"]
LINKED = ["--home-assistant", "--page-url", f"homeassistant://hassio/ingress/{NAME}"]


def main() -> None:
    """Become `cloakwork collect`."""
    os.umask(0o077)
    options = json.loads((DATA / "options.json").read_text(encoding="utf-8"))
    store = str(DATA / "cloakwork.db")
    token, password = CONFIG / "token.txt", DATA / "password"
    if not token.exists():
        made = ["cloakwork", "token", "new", "--role", "analyst", "--label", "add-on", "--store", store]
        token.write_bytes(subprocess.run(made, check=True, stdout=subprocess.PIPE).stdout)
    words = ["cloakwork", "collect", str(CONFIG / options["site"]), "--broker", options["broker"], "--store", store]
    words += ["--keep", options["keep"], *SERVED, *LINKED]
    if options["password"]:
        password.write_text(options["password"], encoding="utf-8")
        words += ["--password-file", str(password)]
    sys.stderr.write(f"sign in on the page with the token in {token}\n")
    os.execvp("cloakwork", words)


if __name__ == "__main__":
    main()
