/** Opens a store of the package that was built. `place` is a folder, or the address of a database. */
export async function openStore(packageFolder, name, place) {
  switch (name) {
    case 'file': {
      const { fileLog } = await import(`${packageFolder}/index.js`)
      return fileLog(place)
    }
    case 'sqlite': {
      const { sqliteLog } = await import(`${packageFolder}/store/sqlite.js`)
      return sqliteLog(`${place}/runs.db`)
    }
    case 'dbos':
    case 'postgres': {
      const { postgresLog } = await import(`${packageFolder}/store/postgres.js`)
      return postgresLog({ connectionString: place, schema: 'crash' })
    }
    default:
      throw new Error(`Expected the store to be file, sqlite, postgres or dbos, got ${name}.`)
  }
}

/** The store, with a process that kills itself before or after its `at`-th append. */
export function killingAt(store, kill) {
  let appends = 0
  const die = () => {
    process.kill(process.pid, 'SIGKILL')
    // Nothing more is done: the signal is on its way.
    return new Promise(() => undefined)
  }
  return {
    get appends() {
      return appends
    },
    append: async (ref, events, options) => {
      appends += 1
      const isDue = appends === kill?.at
      if (isDue && kill.when === 'before') await die()
      await store.append(ref, events, options)
      if (isDue) await die()
    },
    read: (ref, options) => store.read(ref, options),
    claim: (ref, owner, ttlMs) => store.claim(ref, owner, ttlMs),
    inspect: (ref) => store.inspect(ref),
  }
}
