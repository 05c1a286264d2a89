#pragma once

#include "qinglong_sched/core/cron_expression.hpp"

#include <string>

namespace qinglong::core {

// What an expression means, in one English sentence: "At 09:00 on Monday through Friday."
std::string describe(const CronExpression& expression);

} // namespace qinglong::core
