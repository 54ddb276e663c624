/** Query and response of the search by id, name or address. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { queryNumber } from '../../platform/wire.ts';
import { WIRE_STATUSES } from '../pods/pod.state.ts';

const MAX_QUERY_CHARS = 100;
const MAX_LIMIT = 50;
const DEFAULT_LIMIT = 10;

export const SearchQuery = z
  .object(
    described(
      {
        q: z.string().trim().min(1).max(MAX_QUERY_CHARS),
        limit: queryNumber(z.int().min(1).max(MAX_LIMIT).default(DEFAULT_LIMIT)),
      },
      {
        q: 'Complete id, part of a name, or IP address of a node; case does not matter.',
        limit: 'Maximum number of entries per list, 1 to 50.',
      },
    ),
  )
  .meta({ example: { q: 'training', limit: 10 } });
export type SearchQuery = z.output<typeof SearchQuery>;

export const SearchResults = z
  .object(
    described(
      {
        pods: z.array(
          z.object(
            described(
              {
                id: z.uuid(),
                pod_name: z.string(),
                status: z.enum(WIRE_STATUSES),
                executor_id: z.uuid(),
              },
              {
                id: 'Id of the pod.',
                pod_name: 'Name of the pod.',
                status: 'Status of the pod; `DELETED` for an ended pod.',
                executor_id: 'Id of its node.',
              },
            ),
          ),
        ),
        volumes: z.array(
          z.object(
            described(
              { id: z.uuid(), name: z.string() },
              { id: 'Id of the volume.', name: 'Name of the volume.' },
            ),
          ),
        ),
        templates: z.array(
          z.object(
            described(
              { id: z.uuid(), name: z.string(), docker_image: z.string() },
              {
                id: 'Id of the template.',
                name: 'Name of the template.',
                docker_image: 'Image without its tag.',
              },
            ),
          ),
        ),
        nodes: z.array(
          z.object(
            described(
              {
                id: z.uuid(),
                huid: z.string(),
                machine_name: z.string(),
                executor_ip_address: z.string(),
              },
              {
                id: 'Id of the node.',
                huid: 'Readable name of the node.',
                machine_name: 'Full name of its GPUs.',
                executor_ip_address: 'IP address of the node.',
              },
            ),
          ),
        ),
      },
      {
        pods: "The account's pods with this id or name: live pods, and the newest 1000 ended pods.",
        volumes: "The account's volumes with this id or name.",
        templates:
          "Official templates and the account's own templates with this id, name or image.",
        nodes: 'Nodes that the market offers, with this id, readable name or IP address.',
      },
    ),
  )
  .meta({ id: 'SearchResults' });
export type SearchResults = z.output<typeof SearchResults>;
