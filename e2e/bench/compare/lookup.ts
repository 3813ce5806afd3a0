import type { Load } from './load.js'

interface Zod {
  readonly z: {
    readonly object: (fields: object) => object
    readonly string: () => { readonly describe: (text: string) => object }
  }
}

/** The arguments of the tool, by the zod of the peer. */
export async function lookupArguments(load: Load): Promise<object> {
  const { z } = (await load('zod')) as Zod
  return z.object({ id: z.string().describe('Its id.') })
}
