/**
 * Machines by the number that the kernel has for them (AUDIT_ARCH in linux/audit.h), and the first of the three system calls of
 * the keyring: `add_key`, `request_key` and `keyctl` have numbers in a row (asm/unistd.h).
 */
const KEYRING_CALLS = [
  { machine: 0xc000003e, first: 248 }, // x86-64
  { machine: 0x40000003, first: 286 }, // its programs of 32 bits
  { machine: 0xc00000b7, first: 217 }, // arm64
  { machine: 0x40000028, first: 309 }, // its programs of 32 bits
  { machine: 0xc00000f3, first: 217 }, // riscv64
] as const

/** Places in what a filter reads: the number of the call, and the machine (`struct seccomp_data`). */
const [CALL, MACHINE] = [0, 4]
/** Instructions of the kernel's packet filter (linux/bpf_common.h). */
const [LOAD, AND, IF_EQUAL, IF_GREATER, IF_AT_LEAST, RETURN] = [0x20, 0x54, 0x15, 0x25, 0x35, 0x06]
const ALLOWED = 0x7fff0000
/** ENOSYS: as in a kernel without a keyring. */
const MISSING = 0x00050000 + 38
/** Programs of 32 bits on x86-64 (x32) set this bit in the number. */
const WITHOUT_X32 = 0xbfffffff

type Instruction = readonly [code: number, value: number, ifTrue?: number, ifFalse?: number]

/** A filter for which the keyring of the kernel is not there: it may hold keys of whoever started the host. */
const KEYRING_FILTER: readonly Instruction[] = [
  [LOAD, MACHINE],
  ...KEYRING_CALLS.flatMap(({ machine, first }): Instruction[] => [
    [IF_EQUAL, machine, 0, 6],
    [LOAD, CALL],
    [AND, WITHOUT_X32],
    [IF_AT_LEAST, first, 0, 2],
    [IF_GREATER, first + 2, 1, 0],
    [RETURN, MISSING],
    [RETURN, ALLOWED],
  ]),
  [RETURN, ALLOWED],
]

/** `KEYRING_FILTER` for `printf` of a shell. */
function octalFilter(): string {
  const bytes = KEYRING_FILTER.flatMap(([code, value, ifTrue = 0, ifFalse = 0]) => [
    ...new Uint8Array(Uint16Array.of(code).buffer),
    ...[ifTrue, ifFalse],
    ...new Uint8Array(Uint32Array.of(value).buffer),
  ])
  return bytes.map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
}

/** A descriptor that the sandbox does not use otherwise: at 3 it says that it is complete. */
const FILTER = 4
const SEARCH = 'PATH=${PATH-}:/usr/bin:/bin'

/**
 * The command of `bwrap`, which takes the filter from a file that is gone when it begins: it stays the process that was started,
 * and ends with it.
 */
export function withoutKeyring([bubblewrap = '', ...args]: readonly string[]): readonly string[] {
  const script = `f=$(${SEARCH} mktemp) && printf '${octalFilter()}' >"$f" && exec ${FILTER}<"$f" && ${SEARCH} rm "$f" || exit
exec "$0" --seccomp ${FILTER} "$@"`
  return ['/bin/sh', '-c', script, bubblewrap, ...args]
}
