/** GET /docs: Swagger UI with the descriptions of the API and of the portal. Its files are part of the npm package. */
import { readFile } from 'node:fs/promises';
import type { HttpServer } from '#shared/http/server.ts';

const PACKAGE = '@fastify/swagger-ui/static';
const CACHE_SECONDS = 3_600;

/**
 * Files of the package that the page loads, with their content types. The server returns no other file of the package.
 */
const FILES: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'index.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'swagger-ui-standalone-preset.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};

/** Permits only files and the API of the marketplace: no inline code, no other host. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Podwright API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="/docs/index.css">
<link rel="icon" type="image/png" href="/docs/favicon-32x32.png">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/swagger-ui-standalone-preset.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

/** Descriptions among which the page offers a choice. */
const DESCRIPTIONS = [
  { name: 'API', url: '/api/openapi.json' },
  { name: 'Provider portal', url: '/portal/openapi.json' },
];

/** Start script of the page. With `validatorUrl` null, the page does not send the description to swagger.io. */
const START = `SwaggerUIBundle({
  urls: ${JSON.stringify(DESCRIPTIONS)},
  dom_id: '#swagger-ui',
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
  layout: 'StandaloneLayout',
  validatorUrl: null,
  deepLinking: true,
  docExpansion: 'none',
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
});
`;

const config = { auth: 'none' } as const;

/** Registers the page at the origin. Files are read when they are requested. */
export function registerViewer(origin: HttpServer): void {
  const send = (url: string, type: string, content: () => Promise<Buffer | string>) =>
    origin.get(url, { config }, async (_request, reply) =>
      reply
        .header('Content-Security-Policy', POLICY)
        .header('Cache-Control', `public, max-age=${CACHE_SECONDS}`)
        .type(type)
        .send(await content()),
    );
  send('/docs', 'text/html; charset=utf-8', async () => PAGE);
  send('/docs/start.js', 'text/javascript; charset=utf-8', async () => START);
  for (const [name, type] of Object.entries(FILES)) {
    send(`/docs/${name}`, type, () => readFile(new URL(import.meta.resolve(`${PACKAGE}/${name}`))));
  }
}
