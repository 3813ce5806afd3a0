import { shellQuoted } from '../process/run-process.js'
import { inPieces } from './entrance.js'
import { mountsOf, READ_ONLY_IN_PROC, SYSTEM } from './mounts.js'
import type { Mount, MountPlace } from './mounts.js'

/** The programs of the form `namespaces`, as absolute paths; they are part of util-linux. */
export interface NamespacePrograms {
  readonly setpriv: string
  readonly unshare: string
  readonly sh: string
}

/** Each argument of a program has a limit of 128 KiB. */
const MOUNTS_AT_ONCE = 200

/** The program and the arguments before a program and its arguments. */
export function namespacesCommand(programs: NamespacePrograms, place: MountPlace): readonly string[] {
  const { setpriv, unshare, sh } = programs
  return [
    // Ends with this process, and everything in the PID namespace with it.
    ...[setpriv, '--pdeathsig', 'KILL', '--'],
    ...[unshare, '--user', '--map-root-user', '--mount', '--pid', '--ipc', '--uts', '--fork', '--kill-child'],
    ...(place.sharesNetwork ? [] : ['--net']),
    ...['--', sh, '-c', mountScript(programs, place), 'sandbox'],
    ...inPieces(mountsOf(place).map(mountLine), MOUNTS_AT_ONCE).map((lines) => lines.join('\n')),
    '--',
  ]
}

/** Folders in which the programs of the script are looked for, after those of the environment. */
const PROGRAM_FOLDERS = '/usr/sbin:/usr/bin:/sbin:/bin'

/** Makes a new root in the mount namespace, where the process is its own root user, and gives up the rights to change it. */
function mountScript({ setpriv, unshare }: NamespacePrograms, place: MountPlace): string {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  // Another user has lost its capabilities by then.
  const drop = uid === 0 ? '--inh-caps=-all --bounding-set=-all' : ''
  return `set -e
path=\${PATH-} PATH=\${PATH-}:${PROGRAM_FOLDERS}
${FUNCTIONS}
mount -t tmpfs -o mode=755 tmpfs ${NEW_ROOT}
cd ${NEW_ROOT}
system ${SYSTEM.join(' ')}
${SPECIAL}
while [ "$1" != -- ]; do eval "$1"; shift; done; shift
mkdir .old
pivot_root . .old
cd /
umount -l /.old
rmdir /.old
${place.sharesNetwork ? '' : LOOPBACK}
cd ${shellQuoted(place.cwd)}
session='' # A session of its own has no terminal that the command could type into.
read -r _ _ _ _ _ _ terminal _ </proc/self/stat
[ "$terminal" = 0 ] || session=$(command -v setsid) || { echo 'setsid is not installed' >&2; exit 1; }
set +e
PATH=$path
$session ${unshare} --user --map-user=${uid} --map-group=${gid} -- ${setpriv} --no-new-privs ${drop} -- "$@"
exit $?`
}

/** Covered by the new root. No root of a workspace is in it. */
const NEW_ROOT = '/sys'

/** Of the system: what is mounted below them becomes read-only at once, since each process takes time. */
const TOP_FOLDERS = [...new Set(SYSTEM.map((path) => path.replace(/^(\/[^/]+).*/, '$1')))]

const FUNCTIONS = `
folder() { [ -d ".$1" ] || mkdir -p ".$1"; }
point() { if [ -d "$1" ]; then folder "$1"; elif [ ! -e ".$1" ]; then folder "\${1%/*}"; : >".$1"; fi; }
lock() {
  cat /proc/self/mountinfo | while read -r _ _ _ _ at _; do
    case $at in *\\\\*) at=$(printf '%b' "$at") ;; esac
    case $at in "${NEW_ROOT}$1" | "${NEW_ROOT}$1"/*) mount -o remount,bind,ro "$at" ;; esac
  done
}
write() { point "$1"; mount --rbind "\${2-$1}" ".$1"; }
read_only() { write "$1"; lock "$1"; }
hide_file() { mount --bind /dev/null ".$1"; }
hide_folder() { mount -t tmpfs -o ro,mode=755 tmpfs ".$1"; }
system() {
  links='' files=''
  for each; do
    if [ -L "$each" ] && [ "\${each%/*}" = '' ]; then links="$links $each"
    elif [ -d "$each" ]; then write "$each"
    elif [ "\${each%/*}" = /etc ] && [ -e "$each" ]; then files="$files $each"
    elif [ -e "$each" ]; then folder "\${each%/*}"; cp "$each" ".$each"; fi
  done
  for each in ${TOP_FOLDERS.join(' ')}; do [ ! -d ".$each" ] || lock "$each"; done
  [ -z "$links" ] || cp -P $links .
  [ -z "$files" ] || { folder /etc; cp $files ./etc/; }
}`

const SPECIAL = `
mkdir -p proc dev tmp
mount -t proc proc proc
for each in ${READ_ONLY_IN_PROC.join(' ')}; do
  [ ! -e proc/$each ] || { mount --bind proc/$each proc/$each; mount -o remount,bind,ro proc/$each; }
done
for each in null zero full random urandom; do : >dev/$each; mount --bind /dev/$each dev/$each; done
mkdir dev/shm dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd; ln -s fd/0 dev/stdin; ln -s fd/1 dev/stdout; ln -s fd/2 dev/stderr
mount -t tmpfs -o mode=1777 tmpfs tmp`

/** A new network has a loopback device that is down. Without any of these programs it stays so. */
const LOOPBACK = `ip link set lo up 2>/dev/null || ifconfig lo up 2>/dev/null ||
  perl -e 'socket(S, 2, 2, 0); exit !ioctl(S, 0x8914, pack("a16 s", "lo", 0x49))' 2>/dev/null || :`

function mountLine(mount: Mount): string {
  const path = shellQuoted(mount.path)
  if (mount.how === 'hide') return `${mount.isFolder ? 'hide_folder' : 'hide_file'} ${path}`
  const line =
    mount.how === 'read'
      ? `read_only ${path}`
      : `write ${path} ${mount.from === undefined ? '' : shellQuoted(mount.from)}`
  return mount.optional ? `[ ! -e ${path} ] || ${line}` : line
}
