import { Harness } from 'thinharness'
import { fileTools, PROTECTED_FILES } from 'thinharness/tools'

export const harness = new Harness({
  builtinTools: [],
  tools: fileTools({
    root: './project',
    protect: {
      read: [...PROTECTED_FILES.read, 'customers/**', '!.env.ci'],
      write: [...PROTECTED_FILES.write, 'migrations/**'],
    },
  }),
})
