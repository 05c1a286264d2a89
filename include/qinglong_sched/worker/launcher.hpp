#pragma once

namespace qinglong::worker {

void register_launcher(); // from _PG_init, at preload

}
