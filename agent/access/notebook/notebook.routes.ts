/** POST /v1/pods/{id}/notebook. */
import { z } from 'zod';
import { NotebookRequest } from '#shared/api/agent/notebook.ts';
import { PodId, PodView } from '#shared/api/agent/pod.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { PodService } from '../../pods/pod.service.ts';
import type { NotebookService } from './notebook.service.ts';

const params = z.object({ id: PodId });

export function registerNotebookRoutes(
  server: HttpServer,
  { notebooks, pods }: { notebooks: NotebookService; pods: PodService },
): void {
  server.post(
    '/v1/pods/:id/notebook',
    { schema: { params, body: NotebookRequest, response: { 200: PodView } } },
    async ({ params, body }) => {
      await notebooks.request(params.id, body);
      return pods.get(params.id);
    },
  );
}
