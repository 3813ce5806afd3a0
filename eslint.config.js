import tseslint from 'typescript-eslint'

const size = (functions) => ({
  'max-lines': ['error', { max: 600 }],
  'max-lines-per-function': functions === null ? 'off' : ['error', { max: functions }],
})

export default tseslint.config(
  { ignores: ['dist/', '.build/', 'coverage/', 'node_modules/'] },
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: {
          allowDefaultProject: ['*.js', '*.cjs', 'scripts/*.js', 'e2e/bundlers/*.js', 'e2e/newcomer/*.js'],
        },
      },
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      ...size(60),
      '@typescript-eslint/max-params': ['error', { max: 4 }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: false }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidOperator: true, ignoreVoidReturningFunctions: true },
      ],
      '@typescript-eslint/ban-ts-comment': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true }],
      // `async` is how a function that a contract wants to reject, not throw, is written.
      '@typescript-eslint/require-await': 'off',
      eqeqeq: 'error',
      'no-console': 'error',
    },
  },
  {
    // A test is one story, told in one function.
    files: ['tests/**', 'e2e/**'],
    rules: { ...size(null), '@typescript-eslint/max-params': 'off', '@typescript-eslint/no-non-null-assertion': 'off' },
  },
  {
    // What speaks to a terminal.
    files: [
      'examples/**',
      'scripts/**',
      'e2e/bundlers/**',
      'e2e/newcomer/**',
      'docs/**',
      'e2e/bench/**',
      'e2e/rigs/**',
      'e2e/conformance/**',
    ],
    rules: {
      'no-console': 'off',
      '@typescript-eslint/max-params': 'off',
      // Who reads events takes those that matter to it.
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    },
  },
  { files: ['**/*.js', '**/*.cjs', '**/*.mjs'], extends: [tseslint.configs.disableTypeChecked] },
  {
    // Built elsewhere, by bundlers.
    files: ['e2e/bundlers/programs/**'],
    languageOptions: { parserOptions: { ecmaFeatures: { jsx: true } } },
  },
)
