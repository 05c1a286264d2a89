#!/usr/bin/python3
"""Many schedulers, publishers and an archiver at once; then every call and every change of a row is held against a model.

history.py CONNINFO SECONDS SEED

Replicas over SQL (single claims and batches; some dawdle past their lease, abandon a claim, admit it twice, or lose the
answer of the server) work beside the server's own. recorded are: each call with its arguments, its answer or SQLSTATE
and the time it took; each change of a schedule row, by a table trigger; and the tables at the end. check() replays them
against the rules of admission. Last it is fed histories that were falsified in one place each, and must complain.

Prints lines `note: ...`, `complaint: ...` (of the true history) and `undetected: ...` (a falsification that passed).
"""
import bisect
import collections
import copy
import json
import pickle
import random
import re
import sys
import threading
import time

import psycopg

PROJECTS, TRIGGERS = 5, 100  # of each project
GRACE_MS = 1000              # qinglong_sched.misfire_grace of the server
SINGLE, BATCH, PUBLISHERS = 6, 6, 3
EXPRESSIONS = ['* * * * * *', '*/2 * * * * *', '*/3 * * * * *', '5-59/10 * * * * *', '* * * * *', '0 3 * * *']
ZONES = ['UTC', 'Asia/Shanghai', 'Europe/Berlin', 'America/St_Johns']
POLICIES = ['skip', 'fire_once']
# What a call may answer besides a result.
DOCUMENTED = {'claim': set(), 'admit': {'40001'}, 'publish': {'QL001', '40001', '55P03'}, 'archive': {'40001', '55P03'}}

JOURNAL = """
CREATE TABLE public.journal (change jsonb, was jsonb);
CREATE FUNCTION public.note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.journal VALUES (to_jsonb(NEW), to_jsonb(OLD));
    RETURN NULL;
END $$;
CREATE TRIGGER note_change AFTER INSERT OR UPDATE ON qinglong.trigger_schedules FOR EACH ROW EXECUTE FUNCTION public.note_change();
"""


# --- the clients ------------------------------------------------------------------------------------------------------

class Client(threading.Thread):
    """A session that records what it calls. Its random numbers depend on the seed and its name only."""

    calls = []  # of all clients; append() is atomic
    until = 0.0
    broken = []

    def __init__(self, conninfo, name, seed):
        super().__init__(name=name)
        self.conninfo = conninfo
        self.random = random.Random(f'{seed} {name}')
        self.connection = psycopg.connect(conninfo, autocommit=True)

    def run(self):
        try:
            while time.monotonic() < Client.until:
                self.act()
        except BaseException as error:
            Client.broken.append(f'{self.name}: {error!r}')
            raise
        finally:
            self.connection.close()

    def call(self, kind, what, statements, values, lose=False):
        """Runs the statements (the one with the values answers), and records it. lose: closes the connection once the last one is sent."""
        call = {'client': self.name, 'kind': kind, 'begin': time.monotonic(), **what}
        try:
            rows = None
            for statement in statements[:-1] if lose else statements:
                result = self.connection.execute(statement, values if '%s' in statement else None)
                rows = result.fetchall() if '%s' in statement else rows
            if lose:
                self.connection.pgconn.send_query(statements[-1].encode())
                self.connection.pgconn.flush()
                call['lost'] = True
            call['answer'] = rows
        except psycopg.Error as error:
            call['sqlstate'] = error.sqlstate or 'connection'
            if not self.connection.closed:
                self.connection.rollback()
        call['end'] = time.monotonic()
        Client.calls.append(call)
        if lose:
            self.connection.close()
            self.connection = psycopg.connect(self.conninfo, autocommit=True)
        return call


class Replica(Client):
    """A scheduler over SQL."""
    most = 1

    def act(self):
        lease = self.random.choice([1000, 1000, 1500, 3000])
        claimed = self.call('claim', {'lease': lease}, ['SELECT c::text, to_jsonb(c) FROM qinglong.ql_claim(%s, %s, %s) c'],
                            [self.name, lease, self.most])
        claims = [(row[0], row[1]) for row in claimed.get('answer') or []]
        if not claims:
            time.sleep(0.01)
            return
        mood = self.random.random()
        if mood < 0.05:
            return  # abandons them
        if mood < 0.07:
            time.sleep(lease / 1000 + 0.05)  # and comes too late
        for _ in range(10):
            if self.admit(claims, lose=0.07 < mood < 0.1).get('sqlstate') != '40001':
                break
        if 0.1 < mood < 0.15:
            self.admit(claims)  # the same again

    def admit(self, claims, lose=False):
        single = len(claims) == 1 and self.most == 1
        texts = [text for text, _ in claims]
        return self.call('admit', {'claims': [fact for _, fact in claims]},
                         ['BEGIN ISOLATION LEVEL SERIALIZABLE',
                          'SELECT to_jsonb(a) FROM qinglong.ql_admit(%s::qinglong.schedule_claim) a' if single else
                          'SELECT to_jsonb(a) FROM qinglong.ql_admit_batch(%s::text[]::qinglong.schedule_claim[]) a',
                          'COMMIT'], [texts[0] if single else texts], lose)


class BatchReplica(Replica):
    most = 16


class Publisher(Client):
    """Publishes triggers with other expressions, zones and policies, disables them, and publishes their tasks."""

    def act(self):
        project, trigger = f'p{self.random.randrange(PROJECTS)}', f't{self.random.randrange(TRIGGERS)}'
        what = {'project': project, 'trigger': trigger}
        mood = self.random.random()
        if mood < 0.6:
            self.call('publish', {**what, 'act': 'schedule'}, ["SELECT status, trigger_revision FROM qinglong.ql_schedule(%s, %s, 'true', %s, %s, %s)"],
                      [trigger, self.random.choice(EXPRESSIONS), self.random.choice(ZONES), self.random.choice(POLICIES), project])
        elif mood < 0.75:
            self.call('publish', {**what, 'act': 'unschedule'}, ['SELECT qinglong.ql_unschedule(%s, %s)'], [trigger, project])
        else:
            self.call('publish', {**what, 'act': 'task'}, [
                'SELECT status, revision FROM qinglong.ql_task_publish(%s, %s, %s, %s, '
                '(SELECT current_revision FROM qinglong.task_definitions WHERE project_id = %s AND task_id = %s))'],
                [project, trigger, trigger, json.dumps({'schema': 'qinglong/command@v1', 'config': {'command': {
                    'kind': 'shell', 'command': f'echo {self.random.random()}'}}}), project, trigger])
        time.sleep(self.random.random() * 0.02)


class Archiver(Client):
    def act(self):
        project = f'p{self.random.randrange(PROJECTS)}'
        for status in ('archived', 'active'):
            answer = {}
            while 'answer' not in answer:  # it must not stay archived
                answer = self.call('archive', {'project': project, 'status': status},
                                   ['SELECT status FROM qinglong.ql_project_put(%s, status => %s)'], [project, status])
            time.sleep(0.1 + self.random.random() * 0.4)


def switch(db, enabled):
    """Lets the server's own schedulers work, or waits until nobody else is connected."""
    db.execute(f'ALTER SYSTEM SET qinglong_sched.enabled = {enabled}')
    db.execute('SELECT pg_reload_conf()')
    while enabled == 'off' and db.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()").fetchone()[0]:
        time.sleep(0.05)


def record(conninfo, seconds, seed):
    with psycopg.connect(conninfo, autocommit=True) as db:
        first_ms = db.execute('SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint').fetchone()[0]
        db.execute(JOURNAL)
        choose = random.Random(seed)
        switch(db, 'off')
        for p in range(PROJECTS):
            db.execute('SELECT count(qinglong.ql_schedule(x.t, x.e, $$true$$, x.z, x.p, %s)) FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) x (t, e, z, p)',
                       [f'p{p}', [f't{t}' for t in range(TRIGGERS)]] + [[choose.choice(of) for _ in range(TRIGGERS)] for of in (EXPRESSIONS, ZONES, POLICIES)])
        # Some occurrences pass before anybody schedules: there is something to coalesce and to skip, however fast the machine.
        time.sleep(2.5)
        switch(db, 'on')
        Client.until = time.monotonic() + seconds
        clients = [kind(conninfo, f'{name}-{i}', seed) for kind, name, count in (
            (Replica, 'single', SINGLE), (BatchReplica, 'batch', BATCH), (Publisher, 'publisher', PUBLISHERS), (Archiver, 'archiver', 1))
            for i in range(count)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        # The server's own schedulers end, and so do sessions whose answers were lost.
        switch(db, 'off')

        def table(query):
            return [row[0] for row in db.execute(f'SELECT to_jsonb(x) FROM ({query}) x').fetchall()]
        last_ms = db.execute('SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint').fetchone()[0]
        slots = {}
        for expression in EXPRESSIONS:
            for zone in ZONES:
                slots[f'{expression} {zone}'] = [row[0] for row in db.execute(
                    'SELECT (extract(epoch FROM o) * 1000)::bigint FROM qinglong.ql_occurrences(%s, %s, to_timestamp(%s), %s) o',
                    [expression, zone, first_ms // 1000 - 2, (last_ms - first_ms) // 1000 + 130]).fetchall()]
        return {'calls': Client.calls, 'broken': Client.broken,
                'journal': [{'now': now, 'was': was} for now, was in db.execute('SELECT change, was FROM public.journal').fetchall()],
                'rows': table('SELECT * FROM qinglong.trigger_schedules'), 'runs': table('SELECT * FROM qinglong.runs'),
                'attempts': table('SELECT run_id, attempt FROM qinglong.run_attempts'),
                'events': table('SELECT run_id, sequence, type FROM qinglong.run_events'),
                'revisions': table('SELECT project_id, trigger_id, revision, created_at_ms, enabled, spec_json FROM qinglong.trigger_revisions'),
                'slots': slots, 'findings': table('SELECT * FROM qinglong.ql_check()')}


# --- the model --------------------------------------------------------------------------------------------------------

def key(row):
    return row['project_id'], row['trigger_id']


class Schedule:
    def __init__(self, slots):
        self.slots = slots

    def next(self, after):  # the first one strictly after
        return self.slots[bisect.bisect_right(self.slots, after)]

    def count(self, begin, end):  # in [begin, end)
        return max(0, bisect.bisect_left(self.slots, end) - bisect.bisect_left(self.slots, begin))


def check(history):
    """Complaints about a history, each beginning with a word for the rule that was broken; and what was seen, counted."""
    complaints, seen = [], collections.Counter()

    def demand(truth, rule, *facts):
        if not truth:
            complaints.append(' '.join([rule] + [str(fact) for fact in facts]))
        return truth

    revisions = {(*key(r), r['revision']): r for r in history['revisions']}
    runs = {r['id']: r for r in history['runs']}
    run_at = collections.defaultdict(list)
    for r in history['runs']:
        run_at[(*key(r), r['scheduled_for_ms'])].append(r)

    def schedule_of(row):
        config = revisions[(*key(row), row['trigger_revision'])]['spec_json']['config']
        return Schedule(history['slots'][f"{config['expression']} {config['timezone']}"]), config['misfirePolicy']

    def spans(row):
        return [(int(a), int(b)) for a, b in re.findall(r'\[(\d+),(\d+)\)', row['uncounted'])]

    # The chain of each row: every version once, each change beginning where the one before it ended.
    chains = collections.defaultdict(list)
    for change in history['journal']:
        chains[key(change['now'])].append(change)
    claims, admissions, admitted_at = {}, {}, collections.defaultdict(list)

    def claim(was, now):
        seen['claims'] += 1
        at = now['updated_at_ms']
        demand(now['claim_version'] == was['claim_version'] + 1, 'claim-version', key(now), now['claim_version'])
        demand(was['eligible'] and not was['finished'], 'claim-ineligible', key(now))
        demand(was['claim_token'] is None or was['claim_expires_at_ms'] <= at, 'claim-of-a-live-lease', key(now), was['claim_owner'], now['claim_owner'])
        seen['takeovers'] += was['claim_token'] is not None
        demand(was['updated_at_ms'] <= at and (now['next_fire_at_ms'] or 0) <= at, 'claim-of-nothing-due', key(now))
        demand(now['next_fire_at_ms'] == was['next_fire_at_ms'], 'claim-moves-cursor', key(now))
        demand((*key(now), now['claim_token']) not in claims, 'claim-twice', key(now), now['claim_token'])
        claims[(*key(now), now['claim_token'])] = now

    def admission(was, now):
        schedule, policy = schedule_of(was)
        acquired, cursor = was['updated_at_ms'], was['next_fire_at_ms']
        demand(acquired <= now['updated_at_ms'] < was['claim_expires_at_ms'], 'admission-after-the-lease', key(now), now['state_version'])
        demand(was['eligible'], 'admission-ineligible', key(now))
        start = cursor - 1 if cursor is not None else revisions[(*key(was), was['trigger_revision'])]['created_at_ms'] - 1
        due = schedule.next(start)
        admitted = skipped = coalesced = 0
        if due > acquired:
            disposition, then = 'initialize', due
        else:
            then = schedule.next(acquired)
            if policy == 'skip' and acquired - due > GRACE_MS:
                disposition, skipped = 'skip', schedule.count(start + 1, acquired + 1)
            else:
                disposition, admitted, coalesced = 'admit', 1, schedule.count(due + 1, acquired + 1)
        seen[disposition] += 1
        skipped += sum(schedule.count(a, b) for a, b in spans(was))
        demand(now['next_fire_at_ms'] == then and (cursor is None or then >= cursor), 'cursor', key(now), disposition, cursor, now['next_fire_at_ms'], 'expected', then)
        for total, expected in (('admitted_total', admitted), ('skipped_total', skipped), ('coalesced_total', coalesced)):
            seen[total] += expected
            demand(now[total] - was[total] == expected, 'account', key(now), disposition, total, now[total] - was[total], 'expected', expected)
        demand(not spans(now), 'account', key(now), 'spans are left')
        admissions[(*key(now), was['claim_token'])] = (disposition, due if admitted else None, now)
        if admitted:
            last = admitted_at[key(now)]
            demand(not last or last[-1] < due, 'order', key(now), due, 'after', last[-1:])
            last.append(due)
            found = run_at[(*key(now), due)]
            demand(len(found) == 1, 'run-missing' if not found else 'run-twice', key(now), due)
            for run in found:
                demand(run['created_at_ms'] == now['updated_at_ms'] and run['idempotency_key'] == f"ql3:cron:v1:{now['trigger_id']}:{now['trigger_revision']}:{due}",
                       'run-facts', run['id'], run['idempotency_key'])
            demand(now['last_scheduled_at_ms'] == due, 'last-scheduled', key(now))

    def publication(was, now):
        seen['publications'] += 1
        demand(now['trigger_revision'] == was['trigger_revision'] + 1 and now['claim_version'] == was['claim_version'] + 1, 'publication-versions', key(now))
        demand(now['claim_token'] is None and now['next_fire_at_ms'] is None, 'publication-leaves-a-claim', key(now))
        demand(now['last_scheduled_at_ms'] == was['last_scheduled_at_ms'], 'publication-forgets', key(now))
        schedule, _ = schedule_of(was)
        born = revisions[(*key(now), now['trigger_revision'])]['created_at_ms']
        old_born = revisions[(*key(was), was['trigger_revision'])]['created_at_ms']
        demand(born > old_born and born > (was['last_scheduled_at_ms'] or 0), 'publication-time', key(now))
        skipped = sum(schedule.count(a, b) for a, b in spans(was))
        if was['eligible']:
            skipped += schedule.count(old_born if was['next_fire_at_ms'] is None else was['next_fire_at_ms'], born)
        seen['skipped_total'] += skipped
        demand(now['skipped_total'] - was['skipped_total'] == skipped, 'account', key(now), 'publication', now['skipped_total'] - was['skipped_total'], 'expected', skipped)

    def revocation(was, now):
        seen['revocations'] += 1
        demand(now['claim_version'] == was['claim_version'] + 1 and now['claim_token'] is None, 'revocation-leaves-a-claim', key(now))
        base = was['next_fire_at_ms'] if was['next_fire_at_ms'] is not None else revisions[(*key(was), was['trigger_revision'])]['created_at_ms']
        schedule, _ = schedule_of(was)
        kept = sum(schedule.count(a, b) for a, b in spans(now)) - sum(schedule.count(a, b) for a, b in spans(was))
        demand(kept == schedule.count(base, now['updated_at_ms']), 'account', key(now), 'revocation', kept)

    for chain in chains.values():
        chain.sort(key=lambda change: change['now']['state_version'])
        for before, change in zip(chain, chain[1:]):
            was, now = change['was'], change['now']
            if not demand(was == before['now'] and now['state_version'] == was['state_version'] + 1, 'chain', key(now), now['state_version']):
                continue
            demand(now['claim_version'] >= was['claim_version'], 'claim-version-falls', key(now))
            same = all(now[c] == was[c] for c in ('next_fire_at_ms', 'admitted_total', 'skipped_total', 'coalesced_total', 'last_scheduled_at_ms'))
            if now['trigger_revision'] != was['trigger_revision']:
                publication(was, now)
            elif was['eligible'] and not now['eligible']:
                revocation(was, now)
            elif now['eligible'] and not was['eligible']:
                seen['restorations'] += 1
                demand(now['claim_token'] is None and same or now['next_fire_at_ms'] == now['updated_at_ms'], 'restoration', key(now))
            elif now['claim_token'] not in (None, was['claim_token']):
                claim(was, now)
            elif was['claim_token'] and not now['claim_token'] and now['claim_version'] == was['claim_version'] and not now['fault_code']:
                if same:
                    seen['claims given back'] += 1
                else:
                    admission(was, now)
            elif demand(now['fault_code'] and now['retry_at_ms'] and same, 'change', key(now), now['state_version']):
                seen['set back'] += 1
    final = {key(row): row for row in history['rows']}
    for of, chain in chains.items():
        demand(final.get(of) == chain[-1]['now'], 'final-row', of)
        demand(len(admitted_at[of]) == chain[-1]['now']['admitted_total'] - chain[0]['now']['admitted_total'], 'admitted-total', of)
    demand(len(final) == len(chains) == PROJECTS * TRIGGERS, 'rows', len(final))

    # The tables: one Run, one Attempt and two Events for each admission, and no more.
    attempts = collections.Counter(a['run_id'] for a in history['attempts'])
    events = collections.defaultdict(list)
    for event in history['events']:
        events[event['run_id']].append((event['sequence'], event['type']))
    for run in history['runs']:
        demand(attempts.pop(run['id'], 0) == 1, 'attempts', run['id'])
        demand(sorted(events.pop(run['id'], [])) == [(1, 'run.created'), (2, 'run.queued')], 'events', run['id'])
        demand(run['scheduled_for_ms'] in admitted_at[key(run)], 'run-unaccounted', run['id'], key(run), run['scheduled_for_ms'])
    demand(not attempts and not events, 'orphans', len(attempts), len(events))

    # The answers, against the changes of the rows.
    handed_out, taken, lost = {}, {}, collections.defaultdict(list)
    changes = collections.defaultdict(list)  # acts that void claims, by trigger and by project
    for call in history['calls']:
        seen[f"{call['kind']} calls"] += 1
        if 'sqlstate' in call:
            seen[f"{call['kind']} {call['sqlstate']}"] += 1
            demand(call['sqlstate'] in DOCUMENTED[call['kind']], 'sqlstate', call['kind'], call['sqlstate'], call['client'])
        elif call['kind'] == 'publish':
            if call['answer'][0][0] in ('updated', True):
                changes[(call['project'], call['trigger'])].append(call)
        elif call['kind'] == 'archive' and call['status'] == 'archived':
            changes[call['project']].append(call)
        elif call['kind'] == 'claim':
            for _, fact in call['answer']:
                of = (*key(fact), fact['claim_token'])
                demand((*key(fact), fact['claim_version']) not in handed_out, 'version-twice', key(fact), fact['claim_version'])
                handed_out[(*key(fact), fact['claim_version'])] = call
                taken[of] = call
                row = claims.get(of)
                if demand(row is not None, 'claim-unknown', of):
                    demand([fact[a] for a in ('state_version', 'claim_version', 'next_fire_at_ms', 'claim_owner', 'claim_acquired_at_ms', 'claim_expires_at_ms', 'trigger_revision')]
                           == [row[a] for a in ('state_version', 'claim_version', 'next_fire_at_ms', 'claim_owner', 'updated_at_ms', 'claim_expires_at_ms', 'trigger_revision')],
                           'claim-facts', of)
    answered = {}
    for call in history['calls']:
        if call['kind'] != 'admit' or 'sqlstate' in call:
            continue
        if call.get('lost'):
            seen['answers lost'] += 1
            for fact in call['claims']:
                lost[(*key(fact), fact['claim_token'])].append(call)
            continue
        demand(len(call['answer']) == len(call['claims']), 'answers', call['client'])
        for fact, (answer,) in zip(call['claims'], call['answer']):
            of = (*key(fact), fact['claim_token'])
            seen[f"answer {answer['status']}"] += 1
            demand(key(answer) == key(fact), 'answer-order', of)
            if not demand(answer['status'] in ('admitted', 'advanced', 'raced'), 'answer', of, answer['status'], answer['sqlstate'], answer['message']):
                continue
            if answer['status'] == 'raced':
                continue
            demand(of not in answered, 'answer-twice', of)
            answered[of] = call
            did = admissions.get(of)
            if not demand(did is not None, 'answer-without-admission', of, answer['status']):
                continue
            disposition, due, row = did
            demand((answer['status'] == 'admitted') == (disposition == 'admit') and answer['disposition'] == disposition
                   and answer['scheduled_for_ms'] == due and answer['next_fire_at_ms'] == row['next_fire_at_ms'], 'answer-facts', of, answer, disposition, due)
            if due is not None:
                demand(answer['run_id'] in runs and runs[answer['run_id']]['scheduled_for_ms'] == due, 'answer-run', of, answer['run_id'])
            demand(row['state_version'] == fact['state_version'] + 1 and row['claim_version'] == fact['claim_version'], 'fence', of)
            # By the clients' own clock: nothing that voids the claim lies wholly between the claim and its admission.
            for change in changes[key(fact)] + changes[fact['project_id']]:
                demand(not (of in taken and taken[of]['end'] < change['begin'] and change['end'] < call['begin']), 'stale', of, change['kind'])
            later = handed_out.get((*key(fact), fact['claim_version'] + 1))
            demand(later is None or later['end'] > call['begin'], 'stale', of, 'overtaken')
    ours = tuple(f'{name}-' for name in ('single', 'batch'))
    for of, row in claims.items():
        if row['claim_owner'].startswith(ours):
            demand(of in taken, 'claim-unreported', of)
            demand(of not in admissions or of in answered or of in lost, 'admission-unreported', of)
            seen['admissions of lost answers'] += of in lost and of in admissions
        elif of in admissions:
            seen["the server's own admissions"] += 1
    for of in admissions:
        demand(of in claims, 'admission-without-claim', of)

    # Publications: every revision was somebody's, and once.
    published = collections.Counter((c['project'], c['trigger']) for c in history['calls']
                                    if c['kind'] == 'publish' and 'answer' in c and c['act'] != 'task' and c['answer'][0][0] in ('updated', True))
    for of, chain in chains.items():
        demand(published[of] == chain[-1]['now']['trigger_revision'] - chain[0]['now']['trigger_revision'], 'revisions', of, published[of])
    for finding in history['findings']:
        demand(False, 'ql_check', finding)
    for broken in history['broken']:
        demand(False, 'client', broken)
    return complaints, seen


# --- does the model notice? -------------------------------------------------------------------------------------------

def falsifications(history, choose):
    """Pairs of what was falsified, and a function that does it to a copy of the history."""
    def calls(h, kind, test=lambda call: True):
        return choose.choice([c for c in h['calls'] if c['kind'] == kind and c.get('answer') and not c.get('lost') and test(c)])

    def statuses(call):
        return [row[0]['status'] for row in call['answer']]

    def admitted_once_more(h):
        call = calls(h, 'admit', lambda c: 'admitted' in statuses(c))
        h['calls'].append(copy.deepcopy(call))

    def raced_is_admitted(h):
        call = calls(h, 'admit', lambda c: 'raced' in statuses(c))
        call['answer'][statuses(call).index('raced')][0]['status'] = 'admitted'

    def admitted_is_raced(h):
        call = calls(h, 'admit', lambda c: 'admitted' in statuses(c))
        call['answer'][statuses(call).index('admitted')][0]['status'] = 'raced'

    def versions_swapped(h):
        a, b = choose.sample([c for c in h['calls'] if c['kind'] == 'claim' and c.get('answer')], 2)
        for fact in ('claim_version', 'state_version', 'claim_token'):
            a['answer'][0][1][fact], b['answer'][0][1][fact] = b['answer'][0][1][fact], a['answer'][0][1][fact]

    def version_twice(h):
        call = calls(h, 'claim')
        h['calls'].append({**copy.deepcopy(call), 'client': 'single-0'})

    def another_error(h):
        calls(h, 'publish')['sqlstate'] = 'XX000'

    def run_lost(h):
        h['runs'].pop(choose.randrange(len(h['runs'])))

    def run_twice(h):
        run = choose.choice(h['runs'])
        h['runs'].append({**run, 'id': 'another'})
        h['attempts'].append({'run_id': 'another', 'attempt': 1})
        h['events'] += [{'run_id': 'another', 'sequence': 1, 'type': 'run.created'}, {'run_id': 'another', 'sequence': 2, 'type': 'run.queued'}]

    def run_of_no_occurrence(h):
        choose.choice(h['runs'])['scheduled_for_ms'] += 1

    def event_lost(h):
        h['events'].pop(choose.randrange(len(h['events'])))

    def change_lost(h):
        h['journal'].remove(choose.choice([c for c in h['journal'] if c['was']]))

    def patched(h, test, patch):
        """Alters what a change left, and with it all that follows from it in the chain of its row: only the rule itself can notice."""
        change = choose.choice([c for c in h['journal'] if c['was'] and test(c['was'], c['now'])])
        of, version = key(change['now']), change['now']['state_version']
        for c in h['journal']:
            if key(c['now']) == of:
                if c['now']['state_version'] >= version:
                    patch(c['now'])
                if c['was'] and c['was']['state_version'] >= version:
                    patch(c['was'])
        for row in h['rows']:
            if key(row) == of:
                patch(row)

    def total_off(column):
        return lambda h: patched(h, lambda was, now: now[column] > was[column], lambda row: row.update({column: row[column] + 1}))

    def lease_was_live(h):
        change = choose.choice([c for c in h['journal'] if c['was'] and c['now']['claim_token'] and c['was']['claim_token']])
        live = change['now']['updated_at_ms'] + 1
        before = [c for c in h['journal'] if key(c['now']) == key(change['now']) and c['now']['state_version'] == change['was']['state_version']][0]
        change['was']['claim_expires_at_ms'] = before['now']['claim_expires_at_ms'] = live

    def published_in_between(h):
        call = calls(h, 'admit', lambda c: 'admitted' in statuses(c))
        fact = call['claims'][statuses(call).index('admitted')]
        claimed = [c for c in h['calls'] if c['kind'] == 'claim' and any(f['claim_token'] == fact['claim_token'] for _, f in c.get('answer') or [])][0]
        begin, end = claimed['end'], call['begin']
        step = (end - begin) / 3
        h['calls'].append({'client': 'publisher-0', 'kind': 'publish', 'act': 'task', 'project': fact['project_id'], 'trigger': fact['trigger_id'],
                           'begin': begin + step, 'end': begin + 2 * step, 'answer': [['updated', 2]]})

    return [('an admitted answer twice', admitted_once_more), ('raced, answered as admitted', raced_is_admitted),
            ('admitted, answered as raced', admitted_is_raced), ('versions of two claims swapped', versions_swapped),
            ('a version handed out twice', version_twice), ('an internal error', another_error), ('a Run lost', run_lost),
            ('an occurrence twice', run_twice), ('a Run of no occurrence', run_of_no_occurrence), ('an Event lost', event_lost),
            ('a change of a row unseen', change_lost), ('skipped counted too high', total_off('skipped_total')),
            ('coalesced counted too high', total_off('coalesced_total')), ('admitted counted too high', total_off('admitted_total')),
            ('a live lease taken over', lease_was_live), ('a task published between claim and admission', published_in_between)]


def main():
    conninfo, seconds, seed = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    began = time.monotonic()
    history = record(conninfo, seconds, seed)
    recorded = time.monotonic()
    complaints, seen = check(history)
    print('note: ' + ', '.join(f'{what} {count}' for what, count in sorted(seen.items())))
    for complaint in complaints[:50]:
        print('complaint:', complaint)
    if len(complaints) > 50:
        print('complaint:', len(complaints) - 50, 'more')
    choose = random.Random(seed)
    tried = falsifications(history, choose)
    whole = pickle.dumps(history)
    for what, falsify in tried:
        falsified = pickle.loads(whole)
        falsify(falsified)
        found = check(falsified)[0]
        if len(found) <= len(complaints):
            print('undetected:', what)
        else:
            print('note: noticed', what + ':', [c for c in found if c not in complaints][:1])
    print(f'note: recorded in {recorded - began:.1f} s, checked and falsified in {time.monotonic() - recorded:.1f} s')
    print(f'checked: {len(history["calls"])} calls, {len(history["journal"])} changes, {len(history["runs"])} Runs; {len(complaints)} complaints; {len(tried)} falsifications')


if __name__ == '__main__':
    main()
