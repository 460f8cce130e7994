#include "textflag.h"

// func ask(at *[256]uintptr, n int)
TEXT ·ask(SB), NOSPLIT, $0-16
	MOVD at+0(FP), R0
	MOVD n+8(FP), R1
	CBZ  R1, done

next:
	MOVD.P 8(R0), R2
	PRFM (R2), PLDL1KEEP
	SUB  $1, R1
	CBNZ R1, next

done:
	RET

// func own(at *[256]uintptr, n int)
TEXT ·own(SB), NOSPLIT, $0-16
	MOVD at+0(FP), R0
	MOVD n+8(FP), R1
	CBZ  R1, done

next:
	MOVD.P 8(R0), R2
	PRFM (R2), PSTL1KEEP
	SUB  $1, R1
	CBNZ R1, next

done:
	RET
