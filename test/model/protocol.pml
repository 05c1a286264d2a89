/* The protocol of docs/design.md: claim, commit, decide, admit, commit, beside publications of new revisions, crashes,
 * answers to COMMIT that are lost, and a clock that steps back.
 *
 * Checked: I1 (one Run for each instant), I2 (each occurrence counted once), I3 (a claim that is void writes nothing)
 * and I5 (versions and cursor only grow) as assertions, and `accounted`: every due occurrence is accounted for in the
 * end. README.md says what is left out, and why the result holds all the same.
 *
 * Time is in milliseconds, as in the tables, with small numbers: occurrences at 1, 2 and 3, leases of 2.
 *
 * Each of these breaks something, which must be found out:
 *   OWNER_ONLY         an admission compares the claim's owner and token, nothing else
 *   EXPIRY_ONLY        ... the claim's expiry, nothing else
 *   OWNER_AND_EXPIRY   ... both, nothing else
 *   NO_EXPIRY          ... everything but the expiry
 *   CLOCK_BEFORE_LOCK  ... with a clock that was read before the row lock
 *   TWO_TRANSACTIONS   the cursor moves in a second transaction, after that of the Run
 *   NO_TAKEOVER        nobody takes over an expired lease
 */

#define REPLICAS 2
#define TRIGGERS 2
#define LAST     3                    /* the last occurrence; a cursor beyond it: finished */
#ifndef LEASE
#define LEASE    2
#endif
#define HORIZON  (LAST + LEASE)       /* here the clock stops */

#ifndef BATCH
#define BATCH 2                       /* max_claims; with 1 the rows take turns, by cursor and trigger */
#endif
#ifndef FAULTS
#define FAULTS 2                      /* crashes, lost answers and busy rows, together */
#endif
#ifndef PUBLICATIONS
#define PUBLICATIONS 2                /* at most one of each trigger */
#endif
#ifndef SETBACKS
#define SETBACKS 1                    /* of the clock, by one */
#endif

#define BIT(n)      (1 << (n))
#define SPAN(a, b)  ((BIT((b) + 1) - BIT(a)) & (BIT(LAST + 1) - 2))   /* the occurrences from a to b */
#define MAX(a, b)   ((a) > (b) -> (a) : (b))
#define SKIPS(t)    ((t) == 1)        /* trigger 0 has the policy fire_once, trigger 1 skip with a grace of 0 */

/* A row of trigger_schedules. All replicas use one owner name and one token, so that these tell nobody apart and the
 * other facts have to. A cursor between two occurrences means the first one from there on; so NULL is the time of the
 * publication here, 0 at first. */
typedef Row {
    byte cursor;
    byte floor;                       /* updated_at_ms */
    byte last;                        /* last_scheduled_at_ms */
    byte revision;
    bool leased;
    byte expires;

    /* For the assertions; no step of the protocol reads them. */
    byte runs;                        /* instants that have a Run: there is no unique index here */
    byte counted;                     /* occurrences that were admitted, coalesced or skipped */
};
Row row[TRIGGERS];

/* What a replica knows of its claim of a row. Versions are compared for equality only, and every update adds one: so one
 * bit stands for them, which an update of the row clears in every claim. */
typedef Claim {
    byte cursor;
    byte revision;
    byte acquired;
    bool held;
    bool fresh;                       /* its versions are the row's: the row was not updated since */
};
Claim claims[REPLICAS * TRIGGERS];
#define claim(t)    claims[_pid * TRIGGERS + (t)]
#define HAS(t)      (claim(t).held)

byte now = 0;
byte faults = FAULTS;
byte setbacks = SETBACKS;
bool stopped = false;                 /* one replica may crash for good */

#ifdef NO_TAKEOVER
#define FREE(t, clock)  (!row[t].leased)
#else
#define FREE(t, clock)  (!row[t].leased || row[t].expires <= (clock))
#endif
#define DUE(t, clock)   (row[t].cursor <= LAST && row[t].cursor <= (clock) && row[t].floor <= (clock) && FREE(t, clock))

#define ANY_DUE(clock)  (DUE(0, clock) || DUE(1, clock))

#define EXPIRES(t)      (claim(t).acquired + LEASE)
#define SAME_FACTS(t)   (row[t].leased && row[t].cursor == claim(t).cursor && row[t].revision == claim(t).revision && \
                         row[t].expires == EXPIRES(t) && row[t].floor == claim(t).acquired)
#define SAME_VERSIONS(t) (claim(t).fresh)
#define ALIVE(t)        (clock < EXPIRES(t))

#if defined(OWNER_ONLY)
#define FENCE(t)    (row[t].leased)
#elif defined(EXPIRY_ONLY)
#define FENCE(t)    (ALIVE(t))
#elif defined(OWNER_AND_EXPIRY)
#define FENCE(t)    (row[t].leased && ALIVE(t))
#elif defined(NO_VERSIONS)
#define FENCE(t)    (SAME_FACTS(t) && ALIVE(t))
#elif defined(NO_EXPIRY)
#define FENCE(t)    (SAME_FACTS(t) && SAME_VERSIONS(t))
#else
#define WHOLE_FENCE
#define FENCE(t)    (SAME_FACTS(t) && SAME_VERSIONS(t) && ALIVE(t))
#endif

/* A clock that stepped back behind the claim (QL003) is no reason to write either. */
#define ADMISSIBLE(t)   (HAS(t) && FENCE(t) && clock >= claim(t).acquired)

/* With the whole fence a claim that is not fresh is only good for being raced: its facts make no difference any more,
 * and without them there are far fewer states. */
inline void(c) {
    claims[c].fresh = false;
#ifdef WHOLE_FENCE
    claims[c].cursor = 0;
    claims[c].revision = 0;
    claims[c].acquired = 0
#endif
}

/* Every UPDATE of a row. */
inline change(t, new_cursor, new_revision) {
    assert(new_revision == row[t].revision + 1 || new_cursor >= row[t].cursor);    /* I5 */
    void(t);
    void(TRIGGERS + t);
    row[t].cursor = new_cursor;
    row[t].revision = new_revision
}

inline clear_claim(t) {
    row[t].leased = false;
    row[t].expires = 0
}

inline count_span(t, first, until) {
    assert((row[t].counted & SPAN(first, until)) == 0);                            /* I2: nothing counts twice */
    row[t].counted = row[t].counted | SPAN(first, until)
}

/* The claiming statement and its COMMIT. */
inline take_claim(t) {
    change(t, row[t].cursor, row[t].revision);
    row[t].leased = true;
    row[t].expires = seen + LEASE;
    row[t].floor = seen;
    claim(t).cursor = row[t].cursor;
    claim(t).revision = row[t].revision;
    claim(t).acquired = seen;
    claim(t).held = true;
    claim(t).fresh = true
}

/* Decides: from the claim alone. */
inline decide(t) {
    due = MAX(claim(t).cursor, 1);
    admits = (due <= claim(t).acquired && !(SKIPS(t) && due < claim(t).acquired));
    next = (due > claim(t).acquired -> due : (claim(t).acquired >= LAST -> LAST + 1 : claim(t).acquired + 1))
}

/* Writes the Run. */
inline write_run(t) {
    assert(SAME_VERSIONS(t));                                                      /* I3: still the row's lease */
    assert(now < EXPIRES(t));                                                      /* I3: alive at the row lock */
    decide(t);
    if
    :: admits ->
        assert((row[t].runs & BIT(due)) == 0);                                     /* I1 */
        row[t].runs = row[t].runs | BIT(due)
    :: else
    fi
}

/* Moves the cursor, counts, and clears the claim. */
inline move_cursor(t) {
    decide(t);
    count_span(t, due, next - 1);
    row[t].last = (admits -> due : row[t].last);
    change(t, next, row[t].revision);
    clear_claim(t);
    row[t].floor = clock;
    due = 0; next = 0; admits = false
}

/* The clock of an admission is read under the row lock. */
#ifdef CLOCK_BEFORE_LOCK
#define READ_CLOCK      skip
#else
#define READ_CLOCK      clock = now
#endif

#define EACH(condition) for (t : 0 .. TRIGGERS - 1) { if :: condition ->
#define DONE            :: else fi }; t = 0

/* One transaction: all rows of the batch that are admissible. */
inline admit() {
    READ_CLOCK;
    EACH(ADMISSIBLE(t)) write_run(t); move_cursor(t) DONE;
    clock = 0
}

/* The replica knows nothing any more. */
inline forget() {
    for (t : 0 .. TRIGGERS - 1) {
        claim(t).cursor = 0;
        claim(t).revision = 0;
        claim(t).acquired = 0;
        claim(t).held = false;
        claim(t).fresh = false
    };
    t = 0; clock = 0
}

/* A claim may be lost only where its lease ends before the clock stops, or it would never end. */
#define LOSABLE(t)      (!HAS(t) || EXPIRES(t) <= HORIZON)
#define MAY_FAIL        (faults > 0 && LOSABLE(0) && LOSABLE(1))

active [REPLICAS] proctype Replica() {
    byte clock, seen, due, next, t;
    bool admits;

end_idle:
    if
    /* Claim. The clock is read before the rows are locked: it may have moved since. A look that finds nothing changes
     * nothing, so it is no step. */
    :: atomic {
        if
        :: ANY_DUE(now) -> seen = now
        :: now > 0 && ANY_DUE(now - 1) -> seen = now - 1
        :: setbacks < SETBACKS && now < HORIZON && faults > 0 && ANY_DUE(now + 1) -> faults--; seen = now + 1
        fi;
        if
        :: d_step { DUE(0, seen) && (BATCH > 1 || !DUE(1, seen) || row[0].cursor <= row[1].cursor) -> take_claim(0) };
           if
           :: d_step { BATCH > 1 && DUE(1, seen) -> take_claim(1) }
           :: else
           fi
        :: d_step { DUE(1, seen) && (!DUE(0, seen) || (BATCH == 1 && row[1].cursor < row[0].cursor)) -> take_claim(1) }
        fi;
        seen = 0
      }
    :: atomic { faults > 0 && !stopped -> faults--; stopped = true; goto stop }
    fi;

admission:
#ifdef CLOCK_BEFORE_LOCK
    clock = now;
#endif
#ifdef TWO_TRANSACTIONS
    d_step { READ_CLOCK; EACH(ADMISSIBLE(t)) write_run(t) DONE };
    if
    :: d_step { EACH(HAS(t) && SAME_VERSIONS(t)) move_cursor(t) DONE; clock = 0 }
    :: d_step { MAY_FAIL -> faults--; forget() }; goto end_idle
    fi;
#else
    if
    :: d_step { admit() }
    /* Committed, the answer lost: the same claims are sent once more, or given up. */
    :: d_step { MAY_FAIL -> faults--; admit() }; goto admission
    :: d_step { MAY_FAIL -> faults--; admit(); forget() }; goto end_idle
    /* A crash before COMMIT; or its answer lost, or that of the claim, and nobody goes on with the claims. */
    :: d_step { MAY_FAIL -> faults--; forget() }; goto end_idle
    /* A row was busy: raced. */
    :: d_step { faults > 0 -> faults--; clock = 0 }
    fi;
#endif

    /* Claims that were raced are given back, where they are still ours. */
    d_step {
        EACH(HAS(t) && row[t].leased && SAME_VERSIONS(t))
            change(t, row[t].cursor, row[t].revision);
            clear_claim(t);
            row[t].floor = MAX(row[t].floor, now)
        DONE;
        forget()
    };
    goto end_idle;
stop:
    skip
}

/* At most one new revision of each trigger. The transaction may be rolled back, which changes nothing. */
active proctype Publisher() {
    byte begin, t;
    byte left = PUBLICATIONS;

end_publisher:
    do
    :: atomic {
        if
        :: left > 0 && row[0].revision == 0 -> t = 0
        :: left > 0 && row[1].revision == 0 -> t = 1
        fi;
        left--;
        /* Later than the revision before, which is of 0, than the row's floor and than the last instant admitted. */
        begin = MAX(now, 1);
        begin = MAX(begin, row[t].floor);
        begin = MAX(begin, row[t].last + 1);
        /* What lies between the old cursor and the publication is skipped; from there on the new revision counts. */
        row[t].counted = row[t].counted & SPAN(0, begin - 1);
        if
        :: row[t].cursor < begin -> count_span(t, row[t].cursor, begin - 1)
        :: else
        fi;
        assert((row[t].runs & SPAN(begin, LAST)) == 0);                            /* I1: no instant comes again */
        change(t, (begin > LAST -> LAST + 1 : begin), row[t].revision + 1);
        clear_claim(t);
        row[t].floor = begin;
        begin = 0; t = 0
      }
    :: true -> break
    od
}

active proctype Clock() {
    do
    :: now < HORIZON -> now++
    :: atomic { setbacks > 0 && now > 0 -> setbacks--; now-- }
    :: now == HORIZON -> skip         /* time goes on, unseen: a run without an end, for `accounted` */
    od
}

/* The clock reaches the horizon, so every occurrence falls due; and publications come to an end, so `counted` does. */
ltl accounted { <>[] (row[0].counted == SPAN(1, LAST) && row[1].counted == SPAN(1, LAST)) }
