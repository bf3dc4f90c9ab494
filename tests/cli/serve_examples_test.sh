#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# What examples/serve asks with curl is answered, and the units of systemd are well formed.
. "${srcdir:-.}/tests/cli/support.sh"
small=$srcdir/examples/treelstm

if [[ $("$ESPALIER" serve 2>&1) == *"not part of this build"* ]]; then
	tap_skip "no libmicrohttpd" "the example's requests are answered"
elif ! command -v curl >/dev/null; then
	tap_skip "no curl" "the example's requests are answered"
else
	"$ESPALIER" serve "$small/treelstm.ra" --weights "$small/sst-treelstm-small.safetensors" \
		--vocab "$small/sst-vocab.txt" \
		--backend interpreter --listen 0 >"$tmp/log" 2>"$tmp/messages" &
	server=$!
	for ((i = 0; i < 600; i++)); do
		grep -q '^espalier: ready' "$tmp/messages" && break
		kill -0 $server 2>/dev/null || break
		read -r -t 0.1 <> <(:) || true
	done
	address=$(sed -n 's/^espalier: listening on //p' "$tmp/messages")
	answers=$(sh "$srcdir/examples/serve/requests.sh" "$address")
	tap_is "$?,$(grep -c 'It works well' <<<"$answers"),$(grep -c '"id":"one"' <<<"$answers")" "0,1,1" \
		"the example's requests are answered" ||
		sed 's/^/# /' "$tmp/messages"
	tap_is "$(grep done <<<"$answers")" 'espalier_requests_total{model="treelstm",outcome="done"} 2' "and counted"
	kill $server
	wait $server
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
