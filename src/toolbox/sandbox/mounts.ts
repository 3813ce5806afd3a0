import { isInside } from '../workspace/path-policy.js'
import type { ReplacedFolder } from './git-folder.js'
import type { GuardedFile } from './guarded-files.js'

/** A path of the machine in the sandbox, under the same name. Later ones cover earlier ones. */
export type Mount =
  | {
      readonly how: 'read' | 'write'
      readonly path: string
      /** One that does not exist is skipped. */
      readonly optional: boolean
      /** Another path of the machine that it shows. */
      readonly from?: string
    }
  /** Empty in its place. */
  | { readonly how: 'hide'; readonly path: string; readonly isFolder: boolean }

/** Everything that one command can touch. Paths are absolute. */
export interface MountPlace {
  /** Writable. */
  readonly root: string
  /** Inside the root; read-only. A plain folder: the target of a link would be visible in the sandbox. */
  readonly ownFolder: string | null
  /** Files in the root with rules of their own. */
  readonly guarded: readonly (GuardedFile | ReplacedFolder)[]
  readonly readPaths: readonly string[]
  readonly writePaths: readonly string[]
  /** Folders of this package, outside everything that a command can write. */
  readonly given: readonly string[]
  /** The network of the machine. */
  readonly sharesNetwork: boolean
  readonly cwd: string
}

/** Files that the system's programs need, without secrets; those that do not exist are skipped. */
export const SYSTEM: readonly string[] = [
  ...['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store'],
  ...[
    'passwd group nsswitch.conf host.conf hosts resolv.conf gai.conf services protocols localtime timezone mime.types',
    'profile profile.d bash.bashrc alternatives os-release ld.so.cache ld.so.conf ld.so.conf.d ssl/certs ssl/openssl.cnf',
    'ca-certificates pki/tls/certs pki/ca-trust fonts python3 java',
  ].flatMap((names) => names.split(' ').map((name) => `/etc/${name}`)),
]

/**
 * Parts of `/proc` that are read-only: through them, the root user of the machine changes it without any capability, for example
 * the program that the kernel runs for a core dump.
 */
export const READ_ONLY_IN_PROC = ['sys', 'sysrq-trigger', 'irq', 'bus', 'fs', 'acpi', 'scsi'] as const

/** The paths of a command, after the system's. */
export function mountsOf({ root, ownFolder, guarded, readPaths, writePaths, given }: MountPlace): readonly Mount[] {
  const writable = [root, ...writePaths]
  const visible = unwritablePaths(readPaths, writable).filter((path) => !isSystem(path))
  // A folder that is mounted later covers those below it.
  const seen = visible.filter((path) => !visible.some((other) => isInside(other, path)))
  return [
    ...seen.map((path) => ({ how: 'read', path, optional: true }) as const),
    ...unwritablePaths(writePaths, writable).map((path) => ({ how: 'write', path, optional: true }) as const),
    { how: 'write', path: root, optional: false },
    ...(ownFolder === null ? [] : [{ how: 'read', path: ownFolder, optional: false } as const]),
    // One that is gone when it is mounted is noticed at the entrance.
    ...guarded.map((file): Mount => {
      if (file.how === 'write') return { ...file, optional: true }
      const { how, path, isFolder } = file
      return how === 'hide' ? { how, path, isFolder } : { how, path, optional: true }
    }),
    ...given.map((path) => ({ how: 'read', path, optional: false }) as const),
  ]
}

/** Such as a folder of the search path. */
function isSystem(path: string): boolean {
  return /^\/(?:usr|bin|sbin)(?:\/|$)/.test(path)
}

/** Without the paths below writable folders, which are visible with these: a command could replace such a path by a link. */
function unwritablePaths(paths: readonly string[], writable: readonly string[]): readonly string[] {
  return paths.filter((path) => !writable.some((folder) => isInside(folder, path)))
}
