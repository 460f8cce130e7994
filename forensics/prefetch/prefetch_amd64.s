#include "textflag.h"

// func ask(at *[256]uintptr, n int)
TEXT ·ask(SB), NOSPLIT, $0-16
	MOVQ at+0(FP), SI
	MOVQ n+8(FP), CX
	TESTQ CX, CX
	JE   done

next:
	MOVQ (SI), AX
	PREFETCHT0 (AX)
	ADDQ $8, SI
	DECQ CX
	JNE  next

done:
	RET

// func own(at *[256]uintptr, n int)
TEXT ·own(SB), NOSPLIT, $0-16
	MOVQ at+0(FP), SI
	MOVQ n+8(FP), CX
	TESTQ CX, CX
	JE   done

next:
	MOVQ (SI), AX
	BYTE $0x0F; BYTE $0x0D; BYTE $0x08 // PREFETCHW (AX), which the assembler does not know
	ADDQ $8, SI
	DECQ CX
	JNE  next

done:
	RET
