libespalier_internal_la_SOURCES += \
	%D%/bind.c %D%/data.c %D%/internal.h %D%/memory.c %D%/pack.c %D%/profile.c %D%/profile.h %D%/rows.c %D%/runtime.h %D%/session.c %D%/split.c %D%/split.h %D%/steps.c \
	%D%/team.c %D%/team.h
EXTRA_DIST += %D%/README.md
