#!/usr/bin/env bash
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# The load generator: every request of every server is answered or refused, the same seed gives the same requests, and
# what
# it cannot read is refused.  Times are not looked at.
. "${srcdir:-.}/tests/tap.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trees=$srcdir/examples/treelstm/sentences.ptb
sizes=(--sizes D=4,V=20,E=3 --backend interpreter --no-cache)

# load WORD...: of the tree model, with the records in $work/tsv.
load()
{
	"$builddir/bench/load/load" tsv="$work/tsv" "$@" -- "$srcdir/examples/treelstm/treelstm.ra" "$trees" \
		--collapse "${sizes[@]}" \
		>"$work/out" 2>"$work/err"
}

# column NAME WHAT: that column of the records of WHAT.
column()
{
	awk -F '\t' -v name="$1" -v what="$2" \
		'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $2 == what { print $at[name] }' "$work/tsv"
}

# kept WHAT: whether of all its records as many requests ended as came, and the percentiles grow.
kept()
{
	awk -F '\t' -v what="$1" \
		'$2 == what { n++; bad += $9 != $10 + $11 + $12 || $6 > $7 || $7 > $8 } END { exit !n || bad }' "$work/tsv"
}

# A slow machine, or a sanitizer, may need longer until every server has answered something.
for seconds in 0.05 0.5 3; do
	load seconds=$seconds rounds=1
	status=$?
	grep -q 'answered nothing' "$work/err" || break
done
tap_ok $status "servers are measured"
tap_is "$(column server unloaded | tr '\n' ' ')" "threads window1 window5 cells " "each alone"
tap_is "$(column share open | uniq | tr '\n' ' ')" "0.100 0.300 0.500 0.700 0.900 " "and at shares of its capacity"
tap_is "$(column share limit | wc -l)" 4 "and up to a limit of its latency"
kept open
tap_ok $? "each request ends once"
# Those that find a server idle are told apart; in a closed loop of one all do.
tap_is "$(column idle_us unloaded)" "$(column p50_us unloaded)" "alone each request finds its server idle"
tap_is "$(grep -c 'jitter99' "$work/out")" 5 "lateness of an idle thread stands beside each table"

load seconds=0.1 servers=cells,threads rate=500 burst=4 seed=7
first=$(column requests rate)
load seconds=0.1 servers=cells,threads rate=500 burst=4 seed=7
tap_is "$(column requests rate)" "$first" "the same seed gives the same requests"
tap_is "$(column requests rate | sort -u | wc -l)" 1 "to each server"

load seconds=0.1 overload=3 requests=40 rounds=1 grain=500
tap_ok $? "servers are overloaded"
kept overload
tap_ok $? "what is refused or expires is counted"
kept beside
tap_ok $? "and what the generator refuses"
tap_is "$(column server overload | tr '\n' ' ')$(column server beside | tr '\n' ' ')" \
	"threads window1 window5 cells threads window1 window5 cells " \
	"each server beside the generator, too"
awk -F '\t' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $1 == "cells" && $2 == "closed" { n++; bad += $at["useful"] < 0.999 || $at["useful"] > 1 } END { exit !n || bad }' "$work/tsv"
tap_ok $? "without deadlines all that is computed is of use"
tap_is "$(column server session)$(column server rested)$(column server wake)" "machinemachinemachine" \
	"what a request takes without a server is recorded"

"$builddir/bench/load/load" tsv="$work/tsv" servers=streams streams=50 seconds=0.05 -- "$srcdir/bench/models/lstm.ra" \
	--sizes D=4,E=3 \
	--backend interpreter --no-cache --length 5 >/dev/null 2>"$work/err" && kept open && kept closed
tap_ok $? "elements of streams are, too"

load speed=3
tap_is "$? $(head -n 1 "$work/err")" \
	"2 espalier: 'speed=3' is not NAME=VALUE of a name that there is; models come behind --" \
	"unknown names are refused"
load seconds=-1
tap_is "$? $(head -n 1 "$work/err")" "2 espalier: 'seconds=-1' is no number above 0, or too large" \
	"so are numbers below 0"
load servers=telepathy
tap_is "$? $(head -n 1 "$work/err")" "1 espalier: servers are threads, window1, window5, cells and streams" \
	"and servers that there are not"
load tsv=/nonexistent/tsv
tap_is $? 1 "and records that cannot be written"
tap_done
