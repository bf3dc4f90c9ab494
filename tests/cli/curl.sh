# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# A server that tests ask with curl. They have $ESPALIER and a folder $tmp.

# What the test lacks to ask a server; nothing is printed where it can.
lacks_for_server()
{
	if [[ $("$ESPALIER" serve 2>&1) == *"not part of this build"* ]]; then
		echo "no libmicrohttpd"
	elif ! command -v curl >/dev/null; then
		echo "no curl"
	fi
}

# Serves with these arguments by the interpreter until stop_server: sets $address, writes $tmp/log and $tmp/messages.
start_server()
{
	local i
	"$ESPALIER" serve "$@" --backend interpreter --listen 0 >"$tmp/log" 2>"$tmp/messages" &
	server=$!
	for ((i = 0; i < 1800; i++)); do
		grep -q '^espalier: ready' "$tmp/messages" && break
		kill -0 $server 2>/dev/null || break
		read -r -t 0.1 <> <(:) || true
	done
	address=$(sed -n 's/^espalier: listening on //p' "$tmp/messages")
}

# Returns the status that the server ends with.
stop_server()
{
	kill $server
	wait $server
}
