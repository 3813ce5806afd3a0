// The arguments of the tool as a zod schema, for the contenders that are compared with one.
import { z } from 'zod'

export const LookupArguments = z.object({ id: z.string().describe('Its id.') })
