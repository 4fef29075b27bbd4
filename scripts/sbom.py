"""Prints the SBOM (CycloneDX) of an image: `sbom.py ROOT`, where ROOT has the files of the image.

It is that of the program, which the build wrote, with the Debian packages of /var/lib/dpkg/status.d.
"""

import json
import pathlib
import sys


def fields(text):
    """Returns the fields of a package's control file (deb822), without continued lines."""
    lines = (line for line in text.splitlines() if line[:1] not in ("", " ", "\t"))
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def component(package):
    name, version = package["Package"], package["Version"]
    purl = f"pkg:deb/debian/{name}@{version.replace(':', '%3A').replace('+', '%2B')}?arch={package['Architecture']}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def main():
    root = pathlib.Path(sys.argv[1])
    document = json.loads((root / "usr/share/sbom/sparkgate.cdx.json").read_text())
    # distroless keeps checksums beside the packages.
    files = [path for path in sorted((root / "var/lib/dpkg/status.d").iterdir()) if path.suffix != ".md5sums"]
    if not files:
        sys.exit("the image has no list of packages in /var/lib/dpkg/status.d")
    document.setdefault("components", []).extend(component(fields(path.read_text())) for path in files)
    json.dump(document, sys.stdout, indent=2)
    print()


main()
