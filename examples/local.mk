# What the quickstart runs.
EXTRA_DIST += \
	%D%/treelstm/README.md %D%/treelstm/treelstm.ra %D%/treelstm/sentences.ptb \
	%D%/treelstm/sst-treelstm-small.safetensors %D%/treelstm/sst-vocab.txt

# Models of the field, each against its equations in tests/examples.
EXTRA_DIST += \
	%D%/childsum/README.md %D%/childsum/childsum.ra %D%/gru/README.md %D%/gru/gru-before.ra %D%/gru/gru.ra \
	%D%/lstm/README.md %D%/lstm/lstm.ra %D%/treefc/README.md %D%/treefc/treefc.ra \
	%D%/simpletreegru/README.md %D%/simpletreegru/simpletreegru.ra \
	%D%/treernn/README.md %D%/treernn/treernn.ra \
	%D%/treegru/README.md %D%/treegru/treegru.ra

# A program of a user of the library: built against the tree by `make check`, and by `make installcheck` against the
# installed library through pkg-config, with nothing of the tree in sight.
check_PROGRAMS += %D%/treelstm/embed
examples_treelstm_embed_CPPFLAGS = -I$(srcdir)/src/api
examples_treelstm_embed_LDADD = libespalier.la

installcheck-local:
	$(BASH) $(srcdir)/%D%/installcheck.sh '$(DESTDIR)' '$(pkgconfigdir)' '$(libdir)' '$(bindir)' \
		'$(mandir)' '$(datadir)' '$(CC)' $(srcdir)/%D%/treelstm
EXTRA_DIST += %D%/installcheck.sh
