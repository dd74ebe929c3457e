"""Text that steers a terminal, is a formula, markup and more than a line; and the characters that must not be shown."""

import re

HOSTILE = "=\x1b[31mred\x1b]0;title\x07\x9b2J\u202eevil\u2066<script>alert(1)</script>\nnext\x7f"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
