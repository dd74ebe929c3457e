#!/usr/bin/env bash
# The GitHub Action of action.yml: installs Plinth, runs EXPERIMENT, and writes the comparison with BASELINE, else the report,
# as Markdown. Ends with 99 for a finding of FAIL_ON, with 0 when the run measured, decided or not, else as `plinth run` did.
set -euo pipefail
python3 -m venv "$RUNNER_TEMP/plinth"
PATH="$RUNNER_TEMP/plinth/bin:$PATH"
pip install --quiet --disable-pip-version-check "$PACKAGE"

bundle=$RUNNER_TEMP/plinth-bundle
comment=$RUNNER_TEMP/plinth-comment.md
# All lines of a block count. `read` ends with 1, since there is no zero byte to end at.
IFS=$' \t\r\n' read -rd '' -a arguments <<<"$ARGUMENTS" || true
IFS=$' \t\r\n' read -rd '' -a findings <<<"$FAIL_ON" || true
fail_on=()
for finding in "${findings[@]}"; do fail_on+=(--fail-on "$finding"); done

code=0
plinth run "$EXPERIMENT" --bundle "$bundle" "${arguments[@]}" || code=$?
[ ! -d "$bundle" ] || echo "bundle=$bundle" >>"$GITHUB_OUTPUT"
[ $code = 0 ] || [ $code = 3 ] || exit $code

code=0
if [ -n "$BASELINE" ]; then
  plinth compare --baseline "$BASELINE" "$bundle" --markdown "${fail_on[@]}" >"$comment" || code=$?
else
  plinth report "$bundle" --markdown "${fail_on[@]}" >"$comment" || code=$?
fi
echo "comment=$comment" >>"$GITHUB_OUTPUT"
cat "$comment" >>"$GITHUB_STEP_SUMMARY"
exit $code
