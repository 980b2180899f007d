"""Reads what cloud-init's data source NoCloud finds by the kernel arguments in DEBUG_PROC_CMDLINE, and shows it as JSON.

The argument is an empty directory, for what cloud-init wants to keep. Nothing of this computer is looked at but its
serial number, and nothing is configured.
"""

import json
import sys

from cloudinit import helpers
from cloudinit.sources.DataSourceNoCloud import DataSourceNoCloudNet


def text(data):
    return data.decode() if isinstance(data, bytes) else data


# Without a label no disk of this computer is searched.
config = {"datasource": {"NoCloud": {"fs_label": None}}}
paths = helpers.Paths({"cloud_dir": sys.argv[1], "run_dir": sys.argv[1]})
source = DataSourceNoCloudNet(config, None, paths)
found = source.get_data()
metadata = source.metadata or {}
json.dump(
    {
        "found": found,
        "instanceId": metadata.get("instance-id"),
        "hostname": metadata.get("local-hostname"),
        "userData": text(source.userdata_raw),
        "vendorData": text(source.vendordata_raw),
    },
    sys.stdout,
)
