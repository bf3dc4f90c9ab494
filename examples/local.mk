# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
# What the quickstart runs.
nobase_dist_doc_DATA += \
	%D%/treelstm/README.md %D%/treelstm/embed.c %D%/treelstm/treelstm.ra %D%/treelstm/sentences.ptb \
	%D%/treelstm/sst-treelstm-small.safetensors %D%/treelstm/sst-vocab.txt

# What reads CoNLL-U, with the weights and vocabularies that its trainer made.
nobase_dist_doc_DATA += \
	%D%/dependency/README.md %D%/dependency/dependency.ra %D%/dependency/dependency.safetensors \
	%D%/dependency/heldout.tsv %D%/dependency/reference.npz %D%/dependency/relations.txt \
	%D%/dependency/sentences.conllu %D%/dependency/train.py %D%/dependency/words.txt

# Models of the field, each against its equations in tests/examples.
nobase_dist_doc_DATA += \
	%D%/attention/README.md %D%/attention/attention.ra \
	%D%/childsum/README.md %D%/childsum/childsum.ra \
	%D%/labelled/README.md %D%/labelled/embedding.ra %D%/labelled/matrix.ra \
	%D%/gru/README.md %D%/gru/gru-before.ra %D%/gru/gru.ra \
	%D%/lstm/README.md %D%/lstm/lstm.ra %D%/treefc/README.md %D%/treefc/treefc.ra %D%/treefc/treefc-sum.ra \
	%D%/dagrnn/README.md %D%/dagrnn/dagrnn.ra %D%/mvrnn/README.md %D%/mvrnn/mvrnn.ra \
	%D%/patches/README.md %D%/patches/patches.ra \
	%D%/lenet/README.md %D%/lenet/lenet.ra \
	%D%/narylstm/README.md %D%/narylstm/narylstm.ra %D%/rntn/README.md %D%/rntn/rntn.ra \
	%D%/simpletreegru/README.md %D%/simpletreegru/simpletreegru.ra \
	%D%/typed/README.md %D%/typed/typed.ra \
	%D%/treernn/README.md %D%/treernn/treernn.ra \
	%D%/treegru/README.md %D%/treegru/treegru.ra

# Self-attention, with what PyTorch computes of random weights: tests/examples/selfattention_test.sh.
nobase_dist_doc_DATA += \
	%D%/selfattention/README.md %D%/selfattention/reference.npz %D%/selfattention/reference.py \
	%D%/selfattention/selfattention.ra %D%/selfattention/selfattention.safetensors \
	%D%/selfattention/sentences.txt %D%/selfattention/words.txt

# Models that go over their structures more than once: tests/examples/traversals_test.
nobase_dist_doc_DATA += \
	%D%/bilstm/README.md %D%/bilstm/bilstm.ra %D%/bilstm/bilstm2.ra \
	%D%/stacked/README.md %D%/stacked/stacked-gru.ra %D%/stacked/stacked-lstm.ra \
	%D%/updown/README.md %D%/updown/updown.ra

# A program that has a model in it: tests/examples/ahead_test.sh.
nobase_dist_doc_DATA += %D%/ahead/README.md %D%/ahead/sentiment.c

# A program of a user of the library: built against the tree by `make check`, and by `make installcheck` against the
# installed library through pkg-config, with nothing of the tree in sight.
script_programs += %D%/treelstm/embed
examples_treelstm_embed_CPPFLAGS = -I$(srcdir)/src/api
examples_treelstm_embed_LDADD = libespalier.la

# Likewise, of one that serves: tests/examples/serve_test.sh.
nobase_dist_doc_DATA += %D%/serve/README.md %D%/serve/requests.sh %D%/serve/serve.c
script_programs += %D%/serve/serve
examples_serve_serve_CPPFLAGS = -I$(srcdir)/src/api
examples_serve_serve_LDADD = libespalier.la

# Sequences that grow while they are computed: tests/examples/streams_test.sh.
nobase_dist_doc_DATA += %D%/streams/README.md %D%/streams/voice.ra %D%/streams/streams.c
script_programs += %D%/streams/streams
examples_streams_streams_CPPFLAGS = -I$(srcdir)/src/api
examples_streams_streams_LDADD = libespalier.la -lm

# Several machines, of a Ray cluster: python/tests/test_ray.py.
nobase_dist_doc_DATA += \
	%D%/ray/README.md %D%/ray/batch.py %D%/ray/local_cluster.py %D%/ray/serving.py

installcheck-local:
	$(BASH) $(srcdir)/%D%/installcheck.sh '$(DESTDIR)' '$(pkgconfigdir)' '$(libdir)' '$(libexecdir)' '$(bindir)' \
		'$(mandir)' '$(datadir)' '$(docdir)' '$(CC)'
EXTRA_DIST += %D%/installcheck.sh
