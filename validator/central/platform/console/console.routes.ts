/**
 * The console: `/assets/{name}`, and its page for a browser that opens any path without a route. Other clients get the
 * error for an unknown path.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpServer } from '#shared/http/server.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { acceptsHtml } from '../edge/accepts-html.ts';
import { type ConsoleFile, openConsoleFiles } from './console-files.ts';

/**
 * Permits only files of this origin, and connections to it. Without 'unsafe-inline', markup in names and logs cannot run
 * or restyle the page.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

/** The names of assets contain a hash of their content. */
const IMMUTABLE = 'public, max-age=31536000, immutable';
/** Browsers ask for the page each time, because it names the assets of the current build. */
const REVALIDATED = 'no-cache';

/** Paths below these prefixes belong to the API, so an unknown one is an error for browsers too. */
const NOT_PAGES = /^\/(?:api|portal|docs|assets|_local)(?:\/|$)/;

/** Registers the asset route at the origin. The routes have no schema, so the descriptions of the interfaces omit them. */
export function registerConsole(origin: HttpServer, folder: string): void {
  const files = openConsoleFiles(folder);
  origin.get<{ Params: { name: string } }>(
    '/assets/:name',
    // A page has many files, and reading them costs less than counting them.
    { config: { auth: 'none', limit: 'exempt' } },
    async (request, reply) => {
      const file = await files.asset(request.params.name, encodingsOf(request));
      if (file === null) throw new ApiError('not_found', 'The console has no such file');
      return send(reply.header('Cache-Control', IMMUTABLE), file);
    },
  );
}

/**
 * Answers a browser's request for `/` or for a path without a route with the page. Requests pass unchanged if the
 * console is not built.
 */
export function serveConsolePages(server: HttpServer, folder: string): void {
  const files = openConsoleFiles(folder);
  server.addHook('onRequest', async (request, reply) => {
    const { method } = request;
    const path = request.url.split('?', 1)[0] ?? '/';
    if (path !== '/' && (!request.is404 || NOT_PAGES.test(path))) return;
    if ((method !== 'GET' && method !== 'HEAD') || !acceptsHtml(request)) return;
    const page = await files.page(encodingsOf(request));
    if (page === null) return;
    void reply.headers({ 'Content-Security-Policy': POLICY, 'Cache-Control': REVALIDATED });
    return send(reply, page, 'Accept, Accept-Encoding');
  });
}

const encodingsOf = ({ headers }: FastifyRequest): string =>
  [headers['accept-encoding'] ?? []].flat().join(',');

function send(reply: FastifyReply, file: ConsoleFile, vary = 'Accept-Encoding'): FastifyReply {
  void reply.header('Vary', vary).type(file.type);
  if (file.encoding !== null) void reply.header('Content-Encoding', file.encoding);
  return reply.send(file.content);
}
