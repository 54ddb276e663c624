/**
 * GET / and GET /portal: a page for browsers with the next steps, and JSON for other clients. Where the console is built,
 * its page replaces that of `/`.
 */
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { HttpServer } from '#shared/http/server.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { acceptsHtml } from '../edge/accepts-html.ts';

const STYLE =
  'body{max-width:44rem;margin:3rem auto;padding:0 1rem;font:1rem/1.5 system-ui,sans-serif}pre{overflow:auto;padding:1rem;background:#f3f3f3;color:#111}';

/** Permits only the style of this page: no script, no file, no form. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const PAGES = { '/': renterText, '/portal': providerText } as const;

/** Registers the pages at the origin. The routes have no schema, so the descriptions of the interfaces omit them. */
export function registerStartPages(origin: HttpServer): void {
  for (const [url, text] of Object.entries(PAGES)) {
    origin.get(url, { config: { auth: 'none' } }, async (request, reply) => {
      void reply.header('Vary', 'Accept');
      if (!acceptsHtml(request)) return { status: 'ok', name: 'podwright', version: VERSION };
      return reply
        .header('Content-Security-Policy', POLICY)
        .type('text/html; charset=utf-8')
        .serializer((page: string) => page)
        .send(pageOf(text(originOf(request))));
    });
  }
}

const HOST = /^[\w.-]+(?::\d{1,5})?$|^\[[\da-f:.]+\](?::\d{1,5})?$/i;

/** Address that the browser used, for the commands of the page. */
function originOf({ protocol, host }: FastifyRequest): string {
  return HOST.test(host) ? `${protocol}://${host}` : 'https://HOST';
}

function renterText(origin: string): string {
  return `<p>This is the central API of a marketplace for GPU compute: renters rent containers (pods) on the GPU nodes of
providers. Its console is not built: run <code>npm run setup</code> in the checkout, then load this page again.</p>
<ul>
<li><a href="/docs">Reference of all routes</a>, also as <a href="/api/openapi.json">OpenAPI</a></li>
<li><a href="/portal">Offer a GPU host</a> with <code>npm run provider</code></li>
</ul>
<p>The next commands need an API key, which <code>POST /api/users</code> returns for a new account. <code>npm start</code>
writes the key of its account to <code>var/demo.json</code>.</p>
<pre>KEY=…
curl -s -H "X-API-Key: $KEY" ${origin}/api/executors | jq '.[] | {id, machine_name, price_per_hour}'
curl -s -H "X-API-Key: $KEY" ${origin}/api/templates | jq '.[] | {id, name}'
curl -s -H "X-API-Key: $KEY" -H 'Content-Type: application/json' ${origin}/api/executors/NODE/rent \\
  -d '{"pod_name":"first","template_id":"TEMPLATE"}' | jq
</pre>`;
}

function providerText(origin: string): string {
  return `<p>This is the provider portal of a marketplace for GPU compute, as an API: providers add their GPU hosts, set
prices and read verdicts.</p>
<ul>
<li><a href="/docs">Reference of all routes</a>, also as <a href="/portal/openapi.json">OpenAPI</a></li>
<li><a href="/">Rent a pod</a></li>
</ul>
<p>Check on the host what the agent needs, create your key, log in with a signature of it, and add the host. Run these
commands in a checkout of Podwright; <code>agent/README.md</code> has all steps.</p>
<pre>npm run agent -- doctor
npm run provider -- key
npm run provider -- login --url ${origin}/portal
npm run provider -- add --address ADDRESS --gpu-type H100 --gpu-count 8 --price 2.2
npm run provider -- list
</pre>
<p>For other clients: <code>POST /portal/auth/login-flexible</code> returns a token, which the other routes need.</p>`;
}

function pageOf(content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Podwright</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Podwright ${VERSION}</h1>
${content}
</body>
</html>
`;
}
