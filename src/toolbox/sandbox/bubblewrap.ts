import { mountsOf, READ_ONLY_IN_PROC, SYSTEM } from './mounts.js'
import type { Mount, MountPlace } from './mounts.js'

/** The arguments of `bwrap` before a program and its arguments. */
export function bubblewrapArguments(place: MountPlace): string[] {
  return [
    ...['--unshare-all', '--die-with-parent'],
    ...(place.sharesNetwork ? ['--share-net'] : []),
    ...['--cap-drop', 'ALL'],
    ...SYSTEM.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--proc', '/proc'],
    ...READ_ONLY_IN_PROC.flatMap((name) => ['--ro-bind-try', `/proc/${name}`, `/proc/${name}`]),
    ...['--dev', '/dev', '--tmpfs', '/tmp'],
    ...mountsOf(place).flatMap(argumentsOf),
    ...['--chdir', place.cwd],
    '--',
  ]
}

function argumentsOf(mount: Mount): readonly string[] {
  const { how, path } = mount
  switch (how) {
    case 'read':
      return [mount.optional ? '--ro-bind-try' : '--ro-bind', path, path]
    case 'write':
      return [mount.optional ? '--bind-try' : '--bind', path, path]
    case 'hide':
      return mount.isFolder ? ['--tmpfs', path, '--remount-ro', path] : ['--ro-bind', '/dev/null', path]
  }
}
