package scan

// recordedProc is a /proc as it was recorded on a machine with kernel 6.18: process
// 1, an orphan in a deleted directory, an orphan that listens, a parent that does
// not reap, its zombie, and a thread of the kernel. Numbers, names and addresses
// are for documentation. A line "-> target" is a link, \0 a zero byte.
const recordedProc = `-- 1/stat --
1 (stage) S 0 0 0 0 -1 4194560 70 0 0 0 0 0 0 0 20 0 1 0 100 2408448 250 18446744073709551615 93926154948608 93926154952909 140728931086752 0 0 0 0 0 0 1 0 0 17 0 0 0 0 0 0 93926154964432 93926154965432 93926311919616 140728931092959 140728931093003 140728931093003 140728931094505 0
-- 1/status --
Name:	stage
State:	S (sleeping)
Tgid:	1
Pid:	1
PPid:	0
Uid:	0	0	0	0
Gid:	0	0	0	0
FDSize:	256
VmPeak:	    2392 kB
VmSize:	    2352 kB
VmRSS:	    1096 kB
Threads:	1
SigQ:	4/96365
SigPnd:	0000000000000000
ShdPnd:	0000000000000000
SigBlk:	0000000000000000
SigIgn:	0000000000000000
SigCgt:	0000000000000000
NoNewPrivs:	0
Seccomp:	0
voluntary_ctxt_switches:	1
nonvoluntary_ctxt_switches:	1
-- 1/io --
rchar: 3980
wchar: 0
syscr: 8
syscw: 0
read_bytes: 0
write_bytes: 0
cancelled_write_bytes: 0
-- 1/schedstat --
592654 1182684 2
-- 1/cmdline --
/tmp/tri/stage\0init\0bash\0/tmp/tri/record.sh\0
-- 1/cgroup --
0::/
-- 1/limits --
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             unlimited            unlimited            bytes     
Max data size             unlimited            unlimited            bytes     
Max stack size            8388608              unlimited            bytes     
Max core file size        0                    unlimited            bytes     
Max resident set          unlimited            unlimited            bytes     
Max processes             96365                96365                processes 
Max open files            20000                20000                files     
Max locked memory         8388608              8388608              bytes     
Max address space         unlimited            unlimited            bytes     
Max file locks            unlimited            unlimited            locks     
Max pending signals       96365                96365                signals   
Max msgqueue size         819200               819200               bytes     
Max nice priority         0                    0                    
Max realtime priority     0                    0                    
Max realtime timeout      unlimited            unlimited            us        
-- 1/exe --
-> /usr/bin/stage
-- 1/cwd --
-> /home/user
-- 1/ns/net --
-> net:[4026531840]
-- 1/fd/0 --
-> /dev/null
-- 1/fdinfo/0 --
pos:	0
flags:	0100000
mnt_id:	24
ino:	3
-- 1/fd/1 --
-> /tmp/tri/rec.txt
-- 1/fdinfo/1 --
pos:	0
flags:	0100001
mnt_id:	27
ino:	10970151
-- 1/fd/2 --
-> /tmp/tri/rec.txt
-- 1/fdinfo/2 --
pos:	0
flags:	0100001
mnt_id:	27
ino:	10970151
-- 4711/stat --
4711 (node) S 1 4700 4700 0 -1 4194304 98 0 0 0 0 0 0 0 20 0 1 0 163522 2543616 355 18446744073709551615 94854302744576 94854302748877 140725280934832 0 0 0 0 0 512 1 0 0 17 0 0 0 0 0 0 94854302760400 94854302761400 94854754664448 140725280942541 140725280942562 140725280942562 140725280944105 0
-- 4711/status --
Name:	stage
State:	S (sleeping)
Tgid:	7
Pid:	7
PPid:	1
Uid:	1000	1000	1000	1000
Gid:	0	0	0	0
FDSize:	256
VmPeak:	    2484 kB
VmSize:	    2484 kB
VmRSS:	    1552 kB
Threads:	1
SigQ:	4/96365
SigPnd:	0000000000000000
ShdPnd:	0000000000000000
SigBlk:	0000000000000000
SigIgn:	0000000000000000
SigCgt:	0000000000000200
NoNewPrivs:	0
Seccomp:	0
voluntary_ctxt_switches:	2
nonvoluntary_ctxt_switches:	2
-- 4711/io --
rchar: 3980
wchar: 4
syscr: 8
syscw: 1
read_bytes: 0
write_bytes: 16384
cancelled_write_bytes: 0
-- 4711/schedstat --
1037872 3573306 4
-- 4711/cmdline --
node\0jest\0--worker=1\0
-- 4711/cgroup --
0::/
-- 4711/limits --
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             unlimited            unlimited            bytes     
Max data size             unlimited            unlimited            bytes     
Max stack size            8388608              unlimited            bytes     
Max core file size        0                    unlimited            bytes     
Max resident set          unlimited            unlimited            bytes     
Max processes             96365                96365                processes 
Max open files            20000                20000                files     
Max locked memory         8388608              8388608              bytes     
Max address space         unlimited            unlimited            bytes     
Max file locks            unlimited            unlimited            locks     
Max pending signals       96365                96365                signals   
Max msgqueue size         819200               819200               bytes     
Max nice priority         0                    0                    
Max realtime priority     0                    0                    
Max realtime timeout      unlimited            unlimited            us        
-- 4711/exe --
-> /usr/bin/node
-- 4711/cwd --
-> /tmp/build-x (deleted)
-- 4711/ns/net --
-> net:[4026531840]
-- 4711/fd/0 --
-> /dev/null
-- 4711/fdinfo/0 --
pos:	0
flags:	0100002
mnt_id:	96
ino:	3
-- 4711/fd/1 --
-> /dev/null
-- 4711/fdinfo/1 --
pos:	0
flags:	0100002
mnt_id:	96
ino:	3
-- 4711/fd/2 --
-> /dev/null
-- 4711/fdinfo/2 --
pos:	0
flags:	0100002
mnt_id:	96
ino:	3
-- 4712/stat --
4712 (python3) S 1 4701 4701 0 -1 4194304 95 0 0 0 0 0 0 0 20 0 1 0 170000 2543616 326 18446744073709551615 94803487272960 94803487277261 140724103020032 0 0 0 0 0 512 1 0 0 17 0 0 0 0 0 0 94803487288784 94803487289784 94804480245760 140724103027143 140724103027171 140724103027171 140724103028713 0
-- 4712/status --
Name:	stage
State:	S (sleeping)
Tgid:	12
Pid:	12
PPid:	1
Uid:	1000	1000	1000	1000
Gid:	0	0	0	0
FDSize:	256
VmPeak:	    2484 kB
VmSize:	    2484 kB
VmRSS:	    1476 kB
Threads:	1
SigQ:	3/96365
SigPnd:	0000000000000000
ShdPnd:	0000000000000000
SigBlk:	0000000000000000
SigIgn:	0000000000000000
SigCgt:	0000000000000200
NoNewPrivs:	0
Seccomp:	0
voluntary_ctxt_switches:	2
nonvoluntary_ctxt_switches:	1
-- 4712/io --
rchar: 3980
wchar: 9
syscr: 8
syscw: 1
read_bytes: 0
write_bytes: 0
cancelled_write_bytes: 0
-- 4712/schedstat --
752942 803994 3
-- 4712/cmdline --
python3\0-m\0http.server\08080\0
-- 4712/cgroup --
0::/
-- 4712/limits --
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             unlimited            unlimited            bytes     
Max data size             unlimited            unlimited            bytes     
Max stack size            8388608              unlimited            bytes     
Max core file size        0                    unlimited            bytes     
Max resident set          unlimited            unlimited            bytes     
Max processes             96365                96365                processes 
Max open files            20000                20000                files     
Max locked memory         8388608              8388608              bytes     
Max address space         unlimited            unlimited            bytes     
Max file locks            unlimited            unlimited            locks     
Max pending signals       96365                96365                signals   
Max msgqueue size         819200               819200               bytes     
Max nice priority         0                    0                    
Max realtime priority     0                    0                    
Max realtime timeout      unlimited            unlimited            us        
-- 4712/exe --
-> /usr/bin/python3.11
-- 4712/cwd --
-> /home/user
-- 4712/ns/net --
-> net:[4026531840]
-- 4712/fd/0 --
-> /dev/null
-- 4712/fdinfo/0 --
pos:	0
flags:	0100002
mnt_id:	96
ino:	3
-- 4712/fd/1 --
-> /dev/null
-- 4712/fdinfo/1 --
pos:	0
flags:	0100002
mnt_id:	96
ino:	3
-- 4712/fd/2 --
-> /dev/null
-- 4712/fdinfo/2 --
pos:	0
flags:	0100002
mnt_id:	96
ino:	3
-- 4712/fd/3 --
-> socket:[7314952]
-- 4712/fdinfo/3 --
pos:	0
flags:	02
mnt_id:	10
ino:	7314952
-- 4713/stat --
4713 (stage) S 1 4713 4713 0 -1 4194304 186 0 0 0 0 0 0 0 20 0 1 0 180000 2543616 366 18446744073709551615 94545863163904 94545863168205 140727214374848 0 0 0 0 6 512 1 0 0 17 1 0 0 0 0 0 94545863179728 94545863180728 94546677436416 140727214381530 140727214381539 140727214381539 140727214383081 0
-- 4713/status --
Name:	stage
State:	S (sleeping)
Tgid:	14
Pid:	14
PPid:	1
Uid:	1000	1000	1000	1000
Gid:	0	0	0	0
FDSize:	256
VmPeak:	    2484 kB
VmSize:	    2484 kB
VmRSS:	    1636 kB
Threads:	1
SigQ:	3/96365
SigPnd:	0000000000000000
ShdPnd:	0000000000000000
SigBlk:	0000000000000000
SigIgn:	0000000000000006
SigCgt:	0000000000000200
NoNewPrivs:	0
Seccomp:	0
voluntary_ctxt_switches:	2
nonvoluntary_ctxt_switches:	0
-- 4713/io --
rchar: 7960
wchar: 6
syscr: 16
syscw: 1
read_bytes: 0
write_bytes: 0
cancelled_write_bytes: 0
-- 4713/schedstat --
1424004 1470059 2
-- 4713/cmdline --
parent\0x\0
-- 4713/cgroup --
0::/
-- 4713/limits --
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             unlimited            unlimited            bytes     
Max data size             unlimited            unlimited            bytes     
Max stack size            8388608              unlimited            bytes     
Max core file size        0                    unlimited            bytes     
Max resident set          unlimited            unlimited            bytes     
Max processes             96365                96365                processes 
Max open files            20000                20000                files     
Max locked memory         8388608              8388608              bytes     
Max address space         unlimited            unlimited            bytes     
Max file locks            unlimited            unlimited            locks     
Max pending signals       96365                96365                signals   
Max msgqueue size         819200               819200               bytes     
Max nice priority         0                    0                    
Max realtime priority     0                    0                    
Max realtime timeout      unlimited            unlimited            us        
-- 4713/exe --
-> /usr/bin/parent
-- 4713/cwd --
-> /home/user
-- 4713/ns/net --
-> net:[4026531840]
-- 4713/fd/0 --
-> /dev/null
-- 4713/fdinfo/0 --
pos:	0
flags:	0100002
mnt_id:	96
ino:	3
-- 4713/fd/1 --
-> /dev/null
-- 4713/fdinfo/1 --
pos:	0
flags:	0100002
mnt_id:	96
ino:	3
-- 4713/fd/2 --
-> /dev/null
-- 4713/fdinfo/2 --
pos:	0
flags:	0100002
mnt_id:	96
ino:	3
-- 4714/stat --
4714 (child) Z (x) Z 4713 4713 4713 0 -1 4227148 16 0 0 0 0 0 0 0 20 0 1 0 180001 0 0 18446744073709551615 0 0 0 0 0 0 0 6 512 1 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0
-- 4714/status --
Name:	stage
State:	Z (zombie)
Tgid:	16
Pid:	16
PPid:	14
Uid:	1000	1000	1000	1000
Gid:	0	0	0	0
FDSize:	0
Threads:	1
SigQ:	3/96365
SigPnd:	0000000000000000
ShdPnd:	0000000000000000
SigBlk:	0000000000000000
SigIgn:	0000000000000006
SigCgt:	0000000000000200
NoNewPrivs:	0
Seccomp:	0
voluntary_ctxt_switches:	1
nonvoluntary_ctxt_switches:	0
-- 4714/io --
rchar: 0
wchar: 0
syscr: 0
syscw: 0
read_bytes: 0
write_bytes: 0
cancelled_write_bytes: 0
-- 4714/schedstat --
73790 11287 1
-- 4714/cmdline --
-- 4714/cgroup --
0::/
-- 4714/limits --
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             unlimited            unlimited            bytes     
Max data size             unlimited            unlimited            bytes     
Max stack size            8388608              unlimited            bytes     
Max core file size        0                    unlimited            bytes     
Max resident set          unlimited            unlimited            bytes     
Max processes             96365                96365                processes 
Max open files            20000                20000                files     
Max locked memory         8388608              8388608              bytes     
Max address space         unlimited            unlimited            bytes     
Max file locks            unlimited            unlimited            locks     
Max pending signals       96365                96365                signals   
Max msgqueue size         819200               819200               bytes     
Max nice priority         0                    0                    
Max realtime priority     0                    0                    
Max realtime timeout      unlimited            unlimited            us        
-- 4712/net/tcp --
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     
   1: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000     0        0 7314952 1 000000006a4a4458 100 0 0 10 0                   
   1: 0A0200C0:1F90 076433C6:D431 01 00000000:00000000 00:00000000 00000000  1000        0 99 1 0000000000000000 20 4 30 10 -1
-- 4712/net/udp --
   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops            
-- 2/stat --
2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 24 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0

`
