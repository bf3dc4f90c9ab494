libespalier_internal_la_SOURCES += \
	%D%/choose.c %D%/layout.c %D%/order.c %D%/plan.c %D%/sched.def %D%/sched.h %D%/slots.c %D%/text.c %D%/work.c
EXTRA_DIST += %D%/README.md
