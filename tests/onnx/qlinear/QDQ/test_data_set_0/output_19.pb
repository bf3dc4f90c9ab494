By19J
xª‚qcj Œng