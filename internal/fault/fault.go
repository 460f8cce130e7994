// Package fault lets a driver fail or kill the process at its n-th write.
//
// Everything that makes state durable (write, fsync, rename, remove, truncate,
// mkdir) passes [Write] or [Do]. In ordinary builds both only call through and
// are inlined. With the build tag "faultinject" they number the steps of the
// process from 1 and read
//
//	GHOST_FAULT=kill@17         SIGKILL this process before step 17
//	GHOST_FAULT=kill-after@17   SIGKILL it right after step 17
//	GHOST_FAULT=lose@17         as kill, and what was written but not yet fsynced is lost, as after a power cut
//	GHOST_FAULT=torn@17         step 17 writes half of its bytes, then SIGKILL
//	GHOST_FAULT=short@17        step 17 writes half of its bytes, then "no space left on device"
//	GHOST_FAULT=enospc@17       step 17 does nothing but report "no space left on device"
//	GHOST_FAULT=kill@17:cases   only steps whose file name contains "cases" are counted
//	GHOST_FAULT_COUNT=/path     every step appends "{number} {operation} {file}" to this file
//
// The names of the steps are for people; their number is the interface: a
// driver runs once with GHOST_FAULT_COUNT, then once for each number.
package fault
