// The site. `npm run site` stages the pages (scripts/site.js) and builds them with this configuration.
import { readFileSync } from 'node:fs'
import llmstxt from 'vitepress-plugin-llms'
import { SITE, SOURCE, repository, sidebar, slugOf } from '../../scripts/staging.js'

const { description, version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
const address = repository()

/**
 * Of the API reference the names are searched, and not each declaration: that would be half of the index. Of decisions the headings:
 * their texts name everything, and answer no question of a user.
 */
function searched(text, env, markdown) {
  const isByHeadings = /^(?:api|decisions)\//.test(env.relativePath)
  return markdown.render(isByHeadings ? text.match(/^#{1,3} .*$/gm).join('\n\n') : text, env)
}

export default {
  title: 'thinharness',
  description,
  lang: 'en',
  base: process.env['SITE_BASE'] ?? '/',
  srcDir: `../${SOURCE}`,
  outDir: `../${SITE}`,
  cacheDir: `../${SITE}-cache`,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${process.env['SITE_BASE'] ?? '/'}mark.svg` }]],
  markdown: {
    anchor: { slugify: slugOf },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark' },
  },
  vite: {
    logLevel: 'warn',
    // `llms.txt` is staged; this makes `llms-full.txt`, without the declarations (`api/*.md` has them), and a `.md` beside each page.
    plugins: [
      llmstxt({
        generateLLMsTxt: false,
        ignoreFilesPerOutput: { llmsFullTxt: ['api/**', 'decisions/**', 'changelog.md'] },
        injectLLMHint: false,
      }),
    ],
    build: { chunkSizeWarningLimit: 4_000 },
  },
  themeConfig: {
    logo: '/mark.svg',
    search: { provider: 'local', options: { _render: searched } },
    nav: [
      { text: 'Getting started', link: '/getting-started' },
      { text: 'All pages', link: '/pages' },
      { text: 'API', link: '/api/', activeMatch: '^/api/' },
      { text: 'Examples', link: '/examples/', activeMatch: '^/examples/' },
      { text: version, link: '/changelog' },
    ],
    sidebar: sidebar(),
    outline: { level: [2, 3], label: 'On this page' },
    socialLinks: [{ icon: 'github', link: address }],
    editLink: { pattern: ({ frontmatter }) => frontmatter.edit, text: 'Edit this page' },
    docFooter: { prev: 'Previous', next: 'Next' },
    externalLinkIcon: false,
  },
}
