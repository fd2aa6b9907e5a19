----------------------------- MODULE TailMachine -----------------------------
(* tail_machine: kvsan export tail_machine.py --to tla --set branches=2
   Scope: branches=2 blocks=5 block_size=2 positions=2 prompt=3 shared_append=false early_publish=false.

   Run it: java -cp tla2tools.jar tlc2.TLC -config TailMachine.cfg TailMachine.tla *)
EXTENDS Integers, TLC

CONSTANTS
  Block, b0, b1, b2, b3, b4,
  Branch, r0, r1,
  Capacity,  \* capacity
  Positions,  \* positions
  Branches,  \* branches
  BlockSize,  \* block_size
  None

VARIABLES
  alive,  \* Branch -> bool
  length,  \* Branch -> 0..capacity
  phase,  \* Branch -> Phase
  source,  \* Branch -> Block | None
  target,  \* Branch -> Block | None
  table,  \* Branch, 0..positions-1 -> Block | None
  refs,  \* Block -> 0..branches
  wrote,  \* Block, 0..block_size-1 -> Branch | None
  prompted,  \* Block, 0..block_size-1 -> bool
  expected,  \* Branch, 0..capacity-1 -> Branch | None
  given  \* Branch, 0..capacity-1 -> bool

state == <<alive, length, phase, source, target, table, refs, wrote, prompted, expected, given>>
vars == state

\* The value of an option; where it is None there is no value, and TLC stops.
Some(option) == CHOOSE value \in {option} : value # None

\* An index that is a key; where it is none there is no value, and TLC stops.
Within(index, keys) == CHOOSE key \in {index} : key \in keys

\* The keys of a row whose entries are not the default.
Row(entries, absent) == {key \in DOMAIN entries : entries[key] # absent}

\* One turn for each key, from the smallest on.
FoldUp(Turn(_, _), outset, keys) ==
  LET turned[left \in SUBSET keys] ==
        IF left = {} THEN outset
        ELSE LET key == CHOOSE k \in left : \A other \in left : other <= k
             IN  Turn(turned[left \ {key}], key)
  IN  turned[keys]

TypeOK ==
  /\ alive \in [Branch -> BOOLEAN]
  /\ length \in [Branch -> 0 .. Capacity]
  /\ phase \in [Branch -> {"IDLE", "COPYING", "COPIED", "WRITING"}]
  /\ source \in [Branch -> Block \cup {None}]
  /\ target \in [Branch -> Block \cup {None}]
  /\ table \in [Branch -> [0 .. Positions - 1 -> Block \cup {None}]]
  /\ refs \in [Block -> 0 .. Branches]
  /\ wrote \in [Block -> [0 .. BlockSize - 1 -> Branch \cup {None}]]
  /\ prompted \in [Block -> [0 .. BlockSize - 1 -> BOOLEAN]]
  /\ expected \in [Branch -> [0 .. Capacity - 1 -> Branch \cup {None}]]
  /\ given \in [Branch -> [0 .. Capacity - 1 -> BOOLEAN]]

(* Branch 0 holds the prompt in the first blocks. *)
start ==
  /\ alive = [[k \in Branch |-> FALSE] EXCEPT ![r0] = TRUE]
  /\ length = [[k \in Branch |-> 0] EXCEPT ![r0] = 3]
  /\ phase = [k \in Branch |-> "IDLE"]
  /\ source = [k \in Branch |-> None]
  /\ target = [k \in Branch |-> None]
  /\ table = [[k \in Branch |-> [k_2 \in 0 .. Positions - 1 |-> None]] EXCEPT ![r0][0] = b0, ![r0][1] = b1]
  /\ refs = [[k \in Block |-> 0] EXCEPT ![b0] = 1, ![b1] = 1]
  /\ wrote = [k \in Block |-> [k_2 \in 0 .. BlockSize - 1 |-> None]]
  /\ prompted = [[k \in Block |-> [k_2 \in 0 .. BlockSize - 1 |-> FALSE]] EXCEPT ![b0][0] = TRUE, ![b0][1] = TRUE, ![b1][0] = TRUE]
  /\ expected = [k \in Branch |-> [k_2 \in 0 .. Capacity - 1 |-> None]]
  /\ given = [[k \in Branch |-> [k_2 \in 0 .. Capacity - 1 |-> FALSE]] EXCEPT ![r0][0] = TRUE, ![r0][1] = TRUE, ![r0][2] = TRUE]

Init == start

\* What cancel makes of the values, where they change.
cancel_effect(r) ==
  LET turn_p(so_far, p) ==
        LET b == Some(so_far.table[r][p])
            refs_2 == IF so_far.refs[b] > 0 THEN [so_far.refs EXCEPT ![b] = @ - 1] ELSE so_far.refs
        IN  [table |-> [so_far.table EXCEPT ![r][p] = None],
             refs |-> refs_2,
             wrote |-> IF refs_2[b] = 0
                       THEN [so_far.wrote EXCEPT ![b] = [k \in 0 .. BlockSize - 1 |-> None]]
                       ELSE so_far.wrote,
             prompted |-> IF refs_2[b] = 0
                          THEN [so_far.prompted EXCEPT ![b] = [k_2 \in 0 .. BlockSize - 1 |-> FALSE]]
                          ELSE so_far.prompted]
      after_p == FoldUp(turn_p, [table |-> table, refs |-> refs, wrote |-> wrote, prompted |-> prompted], Row(table[r], None))
      pending == target[r]
      refs_4 == IF after_p.refs[pending] > 0
                THEN [after_p.refs EXCEPT ![pending] = @ - 1]
                ELSE after_p.refs
      wrote_4 == IF refs_4[pending] = 0
                 THEN [after_p.wrote EXCEPT ![pending] = [k_2_2 \in 0 .. BlockSize - 1 |-> None]]
                 ELSE after_p.wrote
      prompted_4 == IF refs_4[pending] = 0
                    THEN [after_p.prompted EXCEPT ![pending] = [k_2_3 \in 0 .. BlockSize - 1 |-> FALSE]]
                    ELSE after_p.prompted
  IN  [alive |-> [alive EXCEPT ![r] = FALSE],
       length |-> [length EXCEPT ![r] = 0],
       phase |-> [phase EXCEPT ![r] = "IDLE"],
       source |-> [source EXCEPT ![r] = None],
       target |-> [target EXCEPT ![r] = None],
       table |-> after_p.table,
       refs |-> IF pending # None THEN refs_4 ELSE after_p.refs,
       wrote |-> IF pending # None THEN wrote_4 ELSE after_p.wrote,
       prompted |-> IF pending # None THEN prompted_4 ELSE after_p.prompted,
       expected |-> [expected EXCEPT ![r] = [i \in 0 .. Capacity - 1 |-> None]],
       given |-> [given EXCEPT ![r] = [i_2 \in 0 .. Capacity - 1 |-> FALSE]]]

(* Every reference of branch r goes, that of its pending copy too. *)
cancel(r) ==
  /\ alive[r]
  /\ \E next \in {cancel_effect(r)} :
       /\ alive' = next.alive
       /\ length' = next.length
       /\ phase' = next.phase
       /\ source' = next.source
       /\ target' = next.target
       /\ table' = next.table
       /\ refs' = next.refs
       /\ wrote' = next.wrote
       /\ prompted' = next.prompted
       /\ expected' = next.expected
       /\ given' = next.given

\* What fork makes of the values, where they change.
fork_effect(r, c) ==
  LET turn_p(so_far, p) ==
        LET b == Some(so_far.table[r][p])
        IN  [table |-> [so_far.table EXCEPT ![c][p] = b], refs |-> [so_far.refs EXCEPT ![b] = @ + 1]]
      after_p == FoldUp(turn_p, [table |-> table, refs |-> refs], Row(table[r], None))
  IN  [alive |-> [alive EXCEPT ![c] = TRUE],
       length |-> [length EXCEPT ![c] = length[r]],
       table |-> after_p.table,
       refs |-> after_p.refs,
       expected |-> [expected EXCEPT ![c] =
                      [i \in 0 .. Capacity - 1 |->
                        IF expected[r][i] # None
                        THEN expected[r][i]
                        ELSE expected[c][i]]],
       given |-> [given EXCEPT ![c] = [i_2 \in 0 .. Capacity - 1 |-> IF given[r][i_2] THEN TRUE ELSE given[c][i_2]]]]

(* Branch c starts with everything that branch r has. *)
fork(r, c) ==
  /\ alive[r]
  /\ phase[r] = "IDLE"
  /\ ~alive[c]
  /\ \E next \in {fork_effect(r, c)} :
       /\ alive' = next.alive
       /\ length' = next.length
       /\ table' = next.table
       /\ refs' = next.refs
       /\ expected' = next.expected
       /\ given' = next.given
       /\ UNCHANGED <<phase, source, target, wrote, prompted>>

(* Crossing a block boundary takes a new block. *)
grow(r, b) ==
  /\ alive[r]
  /\ phase[r] = "IDLE"
  /\ length[r] < 4
  /\ length[r] % 2 = 0
  /\ refs[b] = 0
  /\ phase' = [phase EXCEPT ![r] = "WRITING"]
  /\ table' = [table EXCEPT ![r][Within(length[r] \div 2, 0 .. Positions - 1)] = b]
  /\ refs' = [refs EXCEPT ![b] = 1]
  /\ UNCHANGED <<alive, length, source, target, wrote, prompted, expected, given>>

(* A sole owner appends in place. *)
append_in_place(r) ==
  /\ alive[r]
  /\ phase[r] = "IDLE"
  /\ length[r] < 4
  /\ length[r] % 2 # 0
  /\ refs[Some(table[r][length[r] \div 2])] = 1
  /\ phase' = [phase EXCEPT ![r] = "WRITING"]
  /\ UNCHANGED <<alive, length, source, target, table, refs, wrote, prompted, expected, given>>

(* A shared tail is copied to a private block first. *)
start_copy(r, b) ==
  /\ alive[r]
  /\ phase[r] = "IDLE"
  /\ length[r] < 4
  /\ length[r] % 2 # 0
  /\ refs[Some(table[r][length[r] \div 2])] > 1
  /\ refs[b] = 0
  /\ phase' = [phase EXCEPT ![r] = "COPYING"]
  /\ source' = [source EXCEPT ![r] = Some(table[r][length[r] \div 2])]
  /\ target' = [target EXCEPT ![r] = b]
  /\ refs' = [refs EXCEPT ![b] = 1]
  /\ UNCHANGED <<alive, length, table, wrote, prompted, expected, given>>

\* What finish_copy makes of the values, where they change.
finish_copy_effect(r) ==
  LET old_tail == Some(source[r])
      new_tail == Some(target[r])
  IN  [phase |-> [phase EXCEPT ![r] = "COPIED"],
       wrote |-> [wrote EXCEPT ![new_tail] =
                   [k \in 0 .. BlockSize - 1 |->
                     IF wrote[old_tail][k] # None
                     THEN wrote[old_tail][k]
                     ELSE wrote[new_tail][k]]],
       prompted |-> [prompted EXCEPT ![new_tail] =
                      [k_2 \in 0 .. BlockSize - 1 |->
                        IF prompted[old_tail][k_2]
                        THEN TRUE
                        ELSE prompted[new_tail][k_2]]]]

(* The slots of the source are in the target. *)
finish_copy(r) ==
  /\ phase[r] = "COPYING"
  /\ \E next \in {finish_copy_effect(r)} :
       /\ phase' = next.phase
       /\ wrote' = next.wrote
       /\ prompted' = next.prompted
       /\ UNCHANGED <<alive, length, source, target, table, refs, expected, given>>

\* What publish makes of the values, where they change.
publish_effect(r) ==
  LET b == Some(source[r])
      refs_2 == IF refs[b] > 0 THEN [refs EXCEPT ![b] = @ - 1] ELSE refs
  IN  [phase |-> [phase EXCEPT ![r] = "WRITING"],
       source |-> [source EXCEPT ![r] = None],
       target |-> [target EXCEPT ![r] = None],
       table |-> [table EXCEPT ![r][Within(length[r] \div 2, 0 .. Positions - 1)] = Some(target[r])],
       refs |-> refs_2,
       wrote |-> IF refs_2[b] = 0
                 THEN [wrote EXCEPT ![b] = [k \in 0 .. BlockSize - 1 |-> None]]
                 ELSE wrote,
       prompted |-> IF refs_2[b] = 0
                    THEN [prompted EXCEPT ![b] = [k_2 \in 0 .. BlockSize - 1 |-> FALSE]]
                    ELSE prompted]

(* Only a finished copy becomes visible; then the shared tail loses one reference. *)
publish(r) ==
  /\ phase[r] = "COPIED"
  /\ \E next \in {publish_effect(r)} :
       /\ phase' = next.phase
       /\ source' = next.source
       /\ target' = next.target
       /\ table' = next.table
       /\ refs' = next.refs
       /\ wrote' = next.wrote
       /\ prompted' = next.prompted
       /\ UNCHANGED <<alive, length, expected, given>>

\* What finish_write makes of the values, where they change.
finish_write_effect(r) ==
  LET b == Some(table[r][length[r] \div 2])
      k == length[r] % 2
      i == length[r]
  IN  [length |-> [length EXCEPT ![r] = i + 1],
       phase |-> [phase EXCEPT ![r] = "IDLE"],
       wrote |-> [wrote EXCEPT ![b][k] = r],
       prompted |-> [prompted EXCEPT ![b][k] = FALSE],
       expected |-> [expected EXCEPT ![r][Within(i, 0 .. Capacity - 1)] = r]]

(* The token is in its slot. *)
finish_write(r) ==
  /\ phase[r] = "WRITING"
  /\ \E next \in {finish_write_effect(r)} :
       /\ length' = next.length
       /\ phase' = next.phase
       /\ wrote' = next.wrote
       /\ prompted' = next.prompted
       /\ expected' = next.expected
       /\ UNCHANGED <<alive, source, target, table, refs, given>>

Next ==
  \/ \E r \in Branch : cancel(r)
  \/ \E r, c \in Branch : fork(r, c)
  \/ \E r \in Branch, b \in Block : grow(r, b)
  \/ \E r \in Branch : append_in_place(r)
  \/ \E r \in Branch, b \in Block : start_copy(r, b)
  \/ \E r \in Branch : finish_copy(r)
  \/ \E r \in Branch : publish(r)
  \/ \E r \in Branch : finish_write(r)

Spec == Init /\ [][Next]_vars

(* A block has references exactly while a table or a pending copy holds it. *)
refs_cover_holds ==
  \A b \in Block :
    (refs[b] > 0)
    = (\E r_2 \in Branch : target[r_2] = b \/ (\E p_2 \in Row(table[r_2], None) : table[r_2][p_2] = b))

(* Only a sole owner writes. *)
exclusive_write ==
  \A r \in Branch : phase[r] # "WRITING" \/ refs[Some(table[r][length[r] \div 2])] = 1

(* Every branch reads what it must. *)
view_intact ==
  \A r \in Branch :
    /\ \A i_3 \in Row(expected[r], None) : wrote[Some(table[r][i_3 \div 2])][i_3 % 2] = expected[r][i_3]
    /\ \A i_2_2 \in Row(given[r], FALSE) : prompted[Some(table[r][i_2_2 \div 2])][i_2_2 % 2]

(* A copy completes, and its branch writes. *)
can_write_private_copy ==
  \E r \in Branch : phase[r] = "WRITING" /\ length[r] = 3

Symmetry == Permutations(Block) \cup Permutations(Branch)
==============================================================================
