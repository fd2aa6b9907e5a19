/* tail_machine: kvsan export tail_machine.py --to promela --set branches=2
   scope: branches=2 blocks=5 block_size=2 positions=2 prompt=3 shared_append=false early_publish=false

   spin -a -o2 FILE; gcc -O2 -DSAFETY -DNOREDUCE -DNOFAIR -o pan pan.c; ./pan -m10000000
   -o2 keeps in a state what is only written. For a shortest counterexample: gcc -DREACH, ./pan -i.
   An entry m[i, j] is m[i * size of j + j]; a set is a mask; names that end in _ live within one step. */

#define None 255
#define some(x) (x != None -> x : 9999)  /* None where a value is needed is out of every range */
#define below(x, n) (x < n -> x : 9999)  /* an index out of its range is out of every range */
#define obey(rule, holds) breaks_##rule = !(holds); assert(!breaks_##rule)

#define IDLE 0
#define COPYING 1
#define COPIED 2
#define WRITING 3

bool alive[2] = 0;  /* Branch -> bool */
byte length[2] = 0;  /* Branch -> 0..capacity */
byte phase[2] = 0;  /* Branch -> Phase */
byte source[2] = None;  /* Branch -> Block | None */
byte target[2] = None;  /* Branch -> Block | None */
byte table[4] = None;  /* Branch, 0..positions-1 -> Block | None */
byte refs[5] = 0;  /* Block -> 0..branches */
byte wrote[10] = None;  /* Block, 0..block_size-1 -> Branch | None */
bool prompted[10] = 0;  /* Block, 0..block_size-1 -> bool */
byte expected[8] = None;  /* Branch, 0..capacity-1 -> Branch | None */
bool given[8] = 0;  /* Branch, 0..capacity-1 -> bool */

hidden byte breaks_refs_cover_holds;
hidden byte breaks_exclusive_write;
hidden byte breaks_view_intact;
hidden int p_;
hidden int b_;
hidden int k_;
hidden int pending_;
hidden int k_2_;
hidden int i_;
hidden int keys_p_;
hidden int keys_i_;
hidden int old_tail_;
hidden int new_tail_;
hidden int keys_k_;

/* Every reference of branch r goes, that of its pending copy too. */
inline cancel(r) {
  d_step {
    alive[r] ->
    printf("cancel(%d)\n", r);
    for (p_ : 0 .. 1) {
      if
      :: (table[r * 2 + p_] != None) ->
          b_ = table[r * 2 + p_];
          assert(b_ != None);
          if
          :: (refs[b_] > 0) ->
              refs[b_] = (refs[b_] - 1);
          :: else
          fi;
          if
          :: (refs[b_] == 0) ->
              for (k_ : 0 .. 1) {
                if
                :: (wrote[b_ * 2 + k_] != None) ->
                    wrote[b_ * 2 + k_] = None;
                :: else
                fi;
              }
              for (k_ : 0 .. 1) {
                if
                :: prompted[b_ * 2 + k_] ->
                    prompted[b_ * 2 + k_] = 0;
                :: else
                fi;
              }
          :: else
          fi;
          table[r * 2 + p_] = None;
      :: else
      fi;
    }
    pending_ = target[r];
    if
    :: !(pending_ == None) ->
        if
        :: (refs[pending_] > 0) ->
            refs[pending_] = (refs[pending_] - 1);
        :: else
        fi;
        if
        :: (refs[pending_] == 0) ->
            for (k_2_ : 0 .. 1) {
              if
              :: (wrote[pending_ * 2 + k_2_] != None) ->
                  wrote[pending_ * 2 + k_2_] = None;
              :: else
              fi;
            }
            for (k_2_ : 0 .. 1) {
              if
              :: prompted[pending_ * 2 + k_2_] ->
                  prompted[pending_ * 2 + k_2_] = 0;
              :: else
              fi;
            }
        :: else
        fi;
    :: else
    fi;
    alive[r] = 0;
    length[r] = 0;
    phase[r] = IDLE;
    source[r] = None;
    target[r] = None;
    for (i_ : 0 .. 3) {
      if
      :: (expected[r * 4 + i_] != None) ->
          expected[r * 4 + i_] = None;
      :: else
      fi;
    }
    for (i_ : 0 .. 3) {
      if
      :: given[r * 4 + i_] ->
          given[r * 4 + i_] = 0;
      :: else
      fi;
    }
    skip
  }
}

/* Branch c starts with everything that branch r has. */
inline fork(r, c) {
  d_step {
    alive[r] && (phase[r] == IDLE) && !alive[c] ->
    printf("fork(%d, %d)\n", r, c);
    alive[c] = 1;
    length[c] = length[r];
    keys_p_ = ((table[r * 2 + 0] != None) << 0) | ((table[r * 2 + 1] != None) << 1);
    for (p_ : 0 .. 1) {
      if
      :: ((keys_p_ >> p_) & 1) ->
          b_ = table[r * 2 + p_];
          assert(b_ != None);
          table[c * 2 + p_] = b_;
          assert((refs[b_] + 1) <= 2);
          refs[b_] = (refs[b_] + 1);
      :: else
      fi;
    }
    keys_i_ = ((expected[r * 4 + 0] != None) << 0) | ((expected[r * 4 + 1] != None) << 1) | ((expected[r * 4 + 2] != None) << 2) | ((expected[r * 4 + 3] != None) << 3);
    for (i_ : 0 .. 3) {
      if
      :: ((keys_i_ >> i_) & 1) ->
          expected[c * 4 + i_] = expected[r * 4 + i_];
      :: else
      fi;
    }
    keys_i_ = (given[r * 4 + 0] << 0) | (given[r * 4 + 1] << 1) | (given[r * 4 + 2] << 2) | (given[r * 4 + 3] << 3);
    for (i_ : 0 .. 3) {
      if
      :: ((keys_i_ >> i_) & 1) ->
          given[c * 4 + i_] = 1;
      :: else
      fi;
    }
    skip
  }
}

/* Crossing a block boundary takes a new block. */
inline grow(r, b) {
  d_step {
    (alive[r] && (phase[r] == IDLE) && (length[r] < 4)) && ((length[r] % 2) == 0) && (refs[b] == 0) ->
    printf("grow(%d, %d)\n", r, b);
    table[r * 2 + below((length[r] / 2), 2)] = b;
    refs[b] = 1;
    phase[r] = WRITING;
    skip
  }
}

/* A sole owner appends in place. */
inline append_in_place(r) {
  d_step {
    (alive[r] && (phase[r] == IDLE) && (length[r] < 4)) && ((length[r] % 2) != 0) && (refs[some(table[r * 2 + below((length[r] / 2), 2)])] == 1) ->
    printf("append_in_place(%d)\n", r);
    phase[r] = WRITING;
    skip
  }
}

/* A shared tail is copied to a private block first. */
inline start_copy(r, b) {
  d_step {
    (alive[r] && (phase[r] == IDLE) && (length[r] < 4)) && ((length[r] % 2) != 0) && (refs[some(table[r * 2 + below((length[r] / 2), 2)])] > 1) && (refs[b] == 0) ->
    printf("start_copy(%d, %d)\n", r, b);
    source[r] = table[r * 2 + below((length[r] / 2), 2)];
    assert(source[r] != None);
    target[r] = b;
    refs[b] = 1;
    phase[r] = COPYING;
    skip
  }
}

/* The slots of the source are in the target. */
inline finish_copy(r) {
  d_step {
    (phase[r] == COPYING) ->
    printf("finish_copy(%d)\n", r);
    old_tail_ = source[r];
    assert(old_tail_ != None);
    new_tail_ = target[r];
    assert(new_tail_ != None);
    keys_k_ = ((wrote[old_tail_ * 2 + 0] != None) << 0) | ((wrote[old_tail_ * 2 + 1] != None) << 1);
    for (k_ : 0 .. 1) {
      if
      :: ((keys_k_ >> k_) & 1) ->
          wrote[new_tail_ * 2 + k_] = wrote[old_tail_ * 2 + k_];
      :: else
      fi;
    }
    keys_k_ = (prompted[old_tail_ * 2 + 0] << 0) | (prompted[old_tail_ * 2 + 1] << 1);
    for (k_ : 0 .. 1) {
      if
      :: ((keys_k_ >> k_) & 1) ->
          prompted[new_tail_ * 2 + k_] = 1;
      :: else
      fi;
    }
    phase[r] = COPIED;
    skip
  }
}

/* Only a finished copy becomes visible; then the shared tail loses one reference. */
inline publish(r) {
  d_step {
    (phase[r] == COPIED) ->
    printf("publish(%d)\n", r);
    table[r * 2 + below((length[r] / 2), 2)] = target[r];
    assert(table[r * 2 + below((length[r] / 2), 2)] != None);
    b_ = source[r];
    assert(b_ != None);
    if
    :: (refs[b_] > 0) ->
        refs[b_] = (refs[b_] - 1);
    :: else
    fi;
    if
    :: (refs[b_] == 0) ->
        for (k_ : 0 .. 1) {
          if
          :: (wrote[b_ * 2 + k_] != None) ->
              wrote[b_ * 2 + k_] = None;
          :: else
          fi;
        }
        for (k_ : 0 .. 1) {
          if
          :: prompted[b_ * 2 + k_] ->
              prompted[b_ * 2 + k_] = 0;
          :: else
          fi;
        }
    :: else
    fi;
    source[r] = None;
    target[r] = None;
    phase[r] = WRITING;
    skip
  }
}

/* The token is in its slot. */
inline finish_write(r) {
  d_step {
    (phase[r] == WRITING) ->
    printf("finish_write(%d)\n", r);
    b_ = table[r * 2 + below((length[r] / 2), 2)];
    assert(b_ != None);
    k_ = (length[r] % 2);
    i_ = length[r];
    wrote[b_ * 2 + k_] = r;
    prompted[b_ * 2 + k_] = 0;
    expected[r * 4 + below(i_, 4)] = r;
    assert((i_ + 1) <= 4);
    length[r] = (i_ + 1);
    phase[r] = IDLE;
    skip
  }
}

/* A block has references exactly while a table or a pending copy holds it. */
#define refs_cover_holds_p(r, b, p)  ((table[r * 2 + p] != None) && (table[r * 2 + p] == b))
#define refs_cover_holds_r(b, r)  ((target[r] == b) || (refs_cover_holds_p(r, b, 0) || refs_cover_holds_p(r, b, 1)))
#define refs_cover_holds_b(b)  ((refs[b] > 0) == (refs_cover_holds_r(b, 0) || refs_cover_holds_r(b, 1)))
#define refs_cover_holds  (refs_cover_holds_b(0) && refs_cover_holds_b(1) && refs_cover_holds_b(2) && refs_cover_holds_b(3) && refs_cover_holds_b(4))

/* Only a sole owner writes. */
#define exclusive_write_r(r)  (!(phase[r] == WRITING) || (refs[some(table[r * 2 + below((length[r] / 2), 2)])] == 1))
#define exclusive_write  (exclusive_write_r(0) && exclusive_write_r(1))

/* Every branch reads what it must. */
#define view_intact_i(r, i)  (!(expected[r * 4 + i] != None) || (wrote[(some(table[r * 2 + (i / 2)])) * 2 + (i % 2)] == expected[r * 4 + i]))
#define view_intact_i_2(r, i_2)  (!given[r * 4 + i_2] || prompted[(some(table[r * 2 + (i_2 / 2)])) * 2 + (i_2 % 2)])
#define view_intact_r(r)  ((view_intact_i(r, 0) && view_intact_i(r, 1) && view_intact_i(r, 2) && view_intact_i(r, 3)) && (view_intact_i_2(r, 0) && view_intact_i_2(r, 1) && view_intact_i_2(r, 2) && view_intact_i_2(r, 3)))
#define view_intact  (view_intact_r(0) && view_intact_r(1))

active proctype design() {
  d_step { /* start */ alive[0] = 1; length[0] = 3; table[0] = 0; table[1] = 1; refs[0] = 1; refs[1] = 1; prompted[0] = 1; prompted[1] = 1; prompted[2] = 1; given[0] = 1; given[1] = 1; given[2] = 1 };
end:  /* nothing is left to do: a legal end */
  do
  :: cancel(0)
  :: cancel(1)
  :: fork(0, 0)
  :: fork(0, 1)
  :: fork(1, 0)
  :: fork(1, 1)
  :: grow(0, 0)
  :: grow(0, 1)
  :: grow(0, 2)
  :: grow(0, 3)
  :: grow(0, 4)
  :: grow(1, 0)
  :: grow(1, 1)
  :: grow(1, 2)
  :: grow(1, 3)
  :: grow(1, 4)
  :: append_in_place(0)
  :: append_in_place(1)
  :: start_copy(0, 0)
  :: start_copy(0, 1)
  :: start_copy(0, 2)
  :: start_copy(0, 3)
  :: start_copy(0, 4)
  :: start_copy(1, 0)
  :: start_copy(1, 1)
  :: start_copy(1, 2)
  :: start_copy(1, 3)
  :: start_copy(1, 4)
  :: finish_copy(0)
  :: finish_copy(1)
  :: publish(0)
  :: publish(1)
  :: finish_write(0)
  :: finish_write(1)
  :: d_step { !(refs_cover_holds) -> breaks_refs_cover_holds = true; assert(!breaks_refs_cover_holds) }
  :: d_step { !(exclusive_write) -> breaks_exclusive_write = true; assert(!breaks_exclusive_write) }
  :: d_step { !(view_intact) -> breaks_view_intact = true; assert(!breaks_view_intact) }
  od
}
