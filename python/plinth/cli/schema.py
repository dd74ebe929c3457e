"""The command schema."""

import json

from plinth.cli.printing import print_json


def schema() -> int:
    """Print the JSON Schema of experiment files, for editors.

    plinth schema > experiment.schema.json
    """
    from plinth.experiment import json_schema

    print_json(json.dumps(json_schema(), indent=2))
    return 0
