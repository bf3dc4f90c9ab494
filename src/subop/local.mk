libespalier_internal_la_SOURCES += \
	%D%/build.c %D%/evaluate.c %D%/lower.c %D%/ops.def %D%/print.c %D%/subop.h %D%/verify.c
EXTRA_DIST += %D%/README.md
