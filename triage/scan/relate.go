package scan

import (
	"slices"

	"ghostbot/triage/proc"
)

// relate adds to each record who depends on it: what runs below it, and who
// holds the other end of its pipes without being related.
func (s *scanner) relate(records []Record) {
	at := make(map[int]*Record, len(records))
	for i := range records {
		at[records[i].PID] = &records[i]
	}
	for i := range records {
		r := &records[i]
		below := s.world.descendants(r.PID)
		for _, pid := range below {
			kind := "descendant"
			if s.samples[2][pid].stat.PPID == r.PID {
				kind = "child"
			}
			r.dependent(at[pid], kind)
		}
		for _, pid := range s.peers(r.PID, below) {
			r.dependent(at[pid], "peer")
		}
		r.Group = s.orphansGroup(r)
	}
}

// maxDependents bounds the list.
const maxDependents = 256

func (r *Record) dependent(d *Record, kind string) {
	if d != nil && len(r.Dependents) < maxDependents {
		r.Dependents = append(r.Dependents, Dependent{d.PID, d.StartID, kind, d.CmdShort})
	}
}

// peers hold the other end of a pipe of pid and are neither below nor above it.
func (s *scanner) peers(pid int, below []int) []int {
	d := s.world.details_[pid]
	if d == nil {
		return nil
	}
	above := s.world.ancestors(pid)
	var out []int
	for fd, to := range d.fds {
		ino, ok := proc.Inode(to, "pipe")
		if !ok {
			continue
		}
		writes := s.o.FS.Writes(pid, fd)
		for _, e := range s.world.pipes[ino] {
			if other := e.pid; e.writes != writes && other != pid && !slices.Contains(below, other) && !slices.Contains(above, other) && !slices.Contains(out, other) {
				out = append(out, other)
			}
		}
	}
	slices.Sort(out)
	return out
}

// orphansGroup says whether the end of r would send HUP and CONT to a stopped
// process group: one that has a stopped member and whose last tie to the rest of
// its session is r, or r itself when it is a stopped job.
func (s *scanner) orphansGroup(r *Record) bool {
	if r.State == "T" && r.Evidence.TTY == "yes" {
		return true
	}
	for _, pid := range s.world.children[r.PID] {
		c := s.samples[2][pid].stat
		if c.State == 'T' && c.SID == r.SID && c.PGRP != r.PGRP {
			return true
		}
	}
	return false
}
