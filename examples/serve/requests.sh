#!/bin/sh
# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# Asks an `espalier serve` that has the model treelstm of examples/treelstm: requests.sh [ADDRESS]
set -eu
at=${1:-http://127.0.0.1:8080}

echo "-- health"
curl -sf "$at/v2/health/ready" && echo

echo "-- what the model takes and gives"
curl -sf "$at/v2/models/treelstm"

echo "-- a tree in brackets"
curl -sf "$at/v1/run/treelstm" -d '(3 (2 It) (4 (2 works) (2 well)))'

echo "-- the same as a tensor of the Open Inference Protocol, which must be answered within a second"
curl -sf "$at/v2/models/treelstm/infer" -d '{
	"id": "one",
	"parameters": {"deadline_ms": 1000},
	"inputs": [{"name": "structure", "datatype": "BYTES", "shape": [1], "data": ["(3 (2 It) (4 (2 works) (2 well)))"]}]
}'

echo "-- how many requests were answered"
curl -sf "$at/metrics" | grep '^espalier_requests_total'
