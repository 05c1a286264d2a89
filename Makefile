# qinglong_sched: build with PGXS, PostgreSQL's build system for extensions.
#
#   make                  build the library and the install script
#   make install          install into the server that pg_config describes (or PG_CONFIG=...)
#   make check            all tests, against throwaway servers; installs missing Debian packages when run as root
#   make check SUITES="unit regress"
#   make check-all        all tests on PostgreSQL 15, and those of SQL and workers on 17 and 18 (Debian, root)
#   make check-unit | check-model | check-fuzz | check-regress | check-isolation | check-pgtap | check-tap
#   make lint | tidy | format-check
#   make soak             the long-running variants of the tests
#   make bench            speed, as ratios measured side by side
#   make bench-cron       the cron engine beside croner, a library of node
#   make demo             a small cluster of schedulers at work for 20 seconds (KEEP=1 leaves the server up)
#   make installcheck     the SQL tests, against a running server that has the extension installed
#
# Out of tree: make -f ../Makefile. Other compiler: make CXX=clang++-14. Warnings as warnings: make WERROR=

ROOT := $(patsubst %/,%,$(dir $(abspath $(firstword $(MAKEFILE_LIST)))))
EXTVERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" $(ROOT)/qinglong_sched.control)

CHECKS    := check-unit check-model check-fuzz check-regress check-isolation check-pgtap check-tap
RUN_GOALS := check check-all $(CHECKS) lint tidy format-check soak bench bench-cron demo

ifneq (,$(filter $(RUN_GOALS),$(MAKECMDGOALS)))

# --- Goals that drive a script ---------------------------------------------------------------------------------
# They must work before PostgreSQL is installed, so PGXS stays out of this branch; and PGXS has a `check` of its
# own, which says "not supported". Any other goal beside them (make clean check) runs in a make of its own.

.NOTPARALLEL:
.PHONY: $(MAKECMDGOALS)
SUITES ?= all

check:          ; @$(ROOT)/test/run $(SUITES)
$(CHECKS):      ; @$(ROOT)/test/run $(patsubst check-%,%,$@)
check-all:      ; @$(ROOT)/tools/check-all
lint tidy:      ; @$(ROOT)/test/run $@
format-check:   ; @$(ROOT)/test/run format
soak:           ; @$(ROOT)/tools/soak
bench:          ; @$(ROOT)/bench/run
bench-cron:     ; @$(ROOT)/bench/cron
demo:           ; @$(ROOT)/tools/demo
OTHER_GOALS := $(filter-out $(RUN_GOALS),$(MAKECMDGOALS))
ifneq (,$(OTHER_GOALS))
$(OTHER_GOALS): ; +@$(MAKE) -f $(ROOT)/Makefile $@
endif

else

# --- Goals of the build itself ---------------------------------------------------------------------------------

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifeq (,$(PGXS))
$(error $(PG_CONFIG) not found: install the server's development package (Debian: postgresql-server-dev-15), \
	give PG_CONFIG=/path/to/pg_config, or run `make check`, which installs what is missing)
endif

EXTENSION  := qinglong_sched
MODULE_big := qinglong_sched

# $(srcdir) is set by the include of PGXS, hence `=` below.
SRCS       = $(sort $(wildcard $(srcdir)/src/*.cpp $(srcdir)/src/*/*.cpp))
OBJS       = $(patsubst $(srcdir)/%.cpp,%.o,$(SRCS))
CORE_OBJS  = $(filter src/core/%,$(OBJS))
SQL_PARTS  = $(sort $(wildcard $(srcdir)/sql/parts/*.sql))
SQL_SCRIPT = sql/$(EXTENSION)--$(EXTVERSION).sql

DATA        = $(patsubst $(srcdir)/%,%,$(sort $(wildcard $(srcdir)/sql/*--*--*.sql)))
DATA_built  = $(SQL_SCRIPT)
EXTRA_CLEAN = $(OBJS:.o=.d) test/out test/out_iso build-check

# The server's JIT bitcode step compiles with clang and without PG_CXXFLAGS; a C++20 library gains nothing from it.
override with_llvm := no

WERROR   ?= -Werror
WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wformat=2 \
	-Wnon-virtual-dtor -Woverloaded-virtual -Wextra-semi -Wredundant-decls -Wundef -Wunused
ifneq (,$(findstring clang,$(CXX)))
# It counts the server's macros as our code: HOLD_INTERRUPTS() increments a volatile, VARDATA_ANY() casts const away.
WARNINGS += -Wno-unknown-warning-option -Wno-deprecated-volatile
else
WARNINGS += -Wcast-qual -Wduplicated-cond -Wduplicated-branches -Wlogical-op
endif

# The server's headers are system headers (no warnings of theirs): -isystem must name the folder before PGXS's -I.
# QL_CXXFLAGS and QL_LDFLAGS are free for the caller, e.g. a sanitizer.
PG_CPPFLAGS = -I$(srcdir)/include -isystem $(shell $(PG_CONFIG) --includedir-server) \
	-DQL_VERSION='"$(EXTVERSION)"'
PG_CXXFLAGS = -std=c++20 -fPIC -fvisibility=hidden -fvisibility-inlines-hidden -MMD -MP \
	$(WARNINGS) $(WERROR) $(QL_CXXFLAGS)
SHLIB_LINK  = -Wl,--version-script=$(srcdir)/exports.map $(QL_LDFLAGS) -lstdc++

# installcheck: each file gets a fresh database of its own (test/lib/own-db).
REGRESS        = $(sort $(basename $(notdir $(wildcard $(srcdir)/test/sql/*.sql))))
ISOLATION      = $(sort $(basename $(notdir $(wildcard $(srcdir)/test/specs/*.spec))))
REGRESS_OPTS   = --inputdir=$(srcdir)/test --outputdir=test/out --launcher=$(ROOT)/test/lib/own-db
ISOLATION_OPTS = --inputdir=$(srcdir)/test --outputdir=test/out_iso --launcher=$(ROOT)/test/lib/own-db
REGRESS_PREP   = test/out/.stamp test/out_iso/.stamp

include $(PGXS)

# Out of tree only sources come from the source folder, never the objects of a build made there.
VPATH :=
vpath %.cpp $(srcdir)
vpath %.control $(srcdir)

# core/ is pure C++: it sees neither the server's headers nor its settings.
$(CORE_OBJS): override CPPFLAGS := -I$(srcdir)/include -D_FORTIFY_SOURCE=2
$(OBJS): qinglong_sched.control
$(shlib): $(srcdir)/exports.map
%.o: %.cpp
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(CPPFLAGS) -c -o $@ $<

# Rewritten only when it differs, so that a removed part is noticed and an unchanged script stays.
$(SQL_SCRIPT): FORCE
	@mkdir -p $(@D) && cat $(SQL_PARTS) >$@.tmp && { cmp -s $@.tmp $@ && rm $@.tmp || mv $@.tmp $@; }
$(REGRESS_PREP):
	@mkdir -p $(@D) && touch $@
.PHONY: FORCE
-include $(OBJS:.o=.d)

endif
