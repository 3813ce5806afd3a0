import { encryption, rekey } from 'thinharness'
import { sqliteLog } from 'thinharness/store/sqlite'
import type { SqliteLog } from 'thinharness/store/sqlite'

/** Names of keys, and their 32 bytes; from a vault, or from the environment. */
type Keys = Readonly<Record<string, Uint8Array>>

export function encryptedLog(path: string, keys: Keys, keyId: string): SqliteLog {
  return sqliteLog(path, { cipher: encryption({ key: (id) => keys[id], keyId, hideOwners: true }) })
}

/** Writes what is stored anew with another key; the names of logs that a process owns, to try again. */
export async function changeKey(log: SqliteLog, keys: Keys, keyId: string): Promise<readonly string[]> {
  const cipher = encryption({ key: (id) => keys[id], keyId, hideOwners: true })
  const { left } = await rekey(log, cipher)
  return left.map(({ id }) => id)
}
