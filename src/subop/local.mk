libespalier_internal_la_SOURCES += \
	%D%/build.c %D%/evaluate.c %D%/families.c %D%/families.def %D%/fold.c %D%/lower.c %D%/ops.def %D%/print.c %D%/rules.h %D%/subop.h %D%/verify.c
EXTRA_DIST += %D%/README.md
