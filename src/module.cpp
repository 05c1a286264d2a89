#include "qinglong_sched/pg/pg.hpp"
#include "qinglong_sched/settings.hpp"
#include "qinglong_sched/worker/database_commands.hpp"
#include "qinglong_sched/worker/launcher.hpp"
#include "qinglong_sched/worker/shared_state.hpp"

extern "C" {

#ifdef PG_MODULE_MAGIC_EXT
QL_EXPORT extern const Pg_magic_struct* Pg_magic_func(void);
PG_MODULE_MAGIC_EXT(.name = "qinglong_sched", .version = QL_VERSION);
#else
QL_EXPORT extern const Pg_magic_struct* Pg_magic_func(void);
PG_MODULE_MAGIC;
#endif

void _PG_init(void) { // NOLINT(bugprone-reserved-identifier)
    qinglong::settings::define();
    if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
        return;
    qinglong::worker::install_shared_memory();
    qinglong::worker::install_database_commands();
    qinglong::worker::register_launcher();
}
}
