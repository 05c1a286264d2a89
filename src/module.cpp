#include "qinglong_sched/pg/pg.hpp"
#include "qinglong_sched/settings.hpp"

extern "C" {

#ifdef PG_MODULE_MAGIC_EXT
QL_EXPORT extern const Pg_magic_struct* Pg_magic_func(void);
PG_MODULE_MAGIC_EXT(.name = "qinglong_sched", .version = QL_VERSION);
#else
QL_EXPORT extern const Pg_magic_struct* Pg_magic_func(void);
PG_MODULE_MAGIC;
#endif

QL_EXPORT void _PG_init(void); // NOLINT(bugprone-reserved-identifier): the server calls it by this name

void _PG_init(void) { // NOLINT(bugprone-reserved-identifier)
    qinglong::settings::define();
}
}
