#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# What examples/serve asks with curl is answered, and the units of systemd are well formed.
. "${srcdir:-.}/tests/cli/support.sh"
. "${srcdir:-.}/tests/cli/curl.sh"
small=$srcdir/examples/treelstm

lacks=$(lacks_for_server)
if [[ $lacks ]]; then
	tap_skip "$lacks" "the example's requests are answered"
else
	start_server "$small/treelstm.ra" --weights "$small/sst-treelstm-small.safetensors" --vocab "$small/sst-vocab.txt"
	answers=$(sh "$srcdir/examples/serve/requests.sh" "$address")
	tap_is "$?,$(grep -c 'It works well' <<<"$answers"),$(grep -c '"id":"one"' <<<"$answers")" "0,1,1" \
		"the example's requests are answered" ||
		sed 's/^/# /' "$tmp/messages"
	tap_is "$(grep done <<<"$answers")" 'espalier_requests_total{model="treelstm",outcome="done"} 2' "and counted"
	stop_server
	tap_is $? 0 "the server ends with 0"
	tap_is "$(grep -c '"status":200' "$tmp/log")" 5 "each of them is a line of the log"
fi

# The command is not installed here, nor is its manual.
if command -v systemd-analyze >/dev/null; then
	for unit in service socket; do
		sed -e 's|=/usr/bin/espalier |=/bin/true |' -e '/^Documentation=/d' \
			"$srcdir/debian/espalier.$unit" >"$tmp/espalier.$unit"
	done
	said=$(systemd-analyze verify "$tmp/espalier.service" "$tmp/espalier.socket" 2>&1)
	tap_is "$?,$said" "0," "systemd takes the units"
else
	tap_skip "no systemd-analyze" "systemd takes the units"
fi
tap_done
