import { FORMS } from './forms.js'
import type { Hostile } from './hostile.js'
import { KEYS } from './keys.js'
import { REFERENCES } from './references.js'
import { ROOTS } from './roots.js'
import { LIMITS } from './values.js'

export const HOSTILE: readonly Hostile[] = [...ROOTS, ...KEYS, ...FORMS, ...REFERENCES, ...LIMITS]
