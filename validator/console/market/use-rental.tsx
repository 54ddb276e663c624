import { useRef } from 'react';
import type { CreateTemplate } from '../api/api.gen.ts';
import { notSent } from '../api/failure.ts';
import { useAction } from '../session/queries.tsx';
import type { Node } from './node-cells.tsx';
import { type KnownKey, missingIn, problemsIn, type RentValues, rentBody } from './rent-request.ts';
import type { NodeSpec } from './spec.ts';

type Parts = {
  /** Template to create for this pod; null to rent the chosen one. */
  template: CreateTemplate | null;
  keys: readonly KnownKey[];
};

type Rent = (
  values: RentValues,
  parts: Parts,
  idempotencyKey: string,
) => Promise<{ pod_id: string | null }>;

/** Returns the function that rents a pod. A repeat uses the template that an earlier attempt created. */
export function useRental(node: Node | null, spec: NodeSpec): Rent {
  const create = useAction('POST /templates');
  const onNode = useAction('POST /executors/{executor_uuid}/rent');
  const bySpec = useAction('POST /executors/rent-by-spec');
  const created = useRef<{ content: string; id: string } | null>(null);
  async function templateFor(template: CreateTemplate): Promise<string> {
    const content = JSON.stringify(template);
    if (created.current?.content !== content) {
      const { id } = await create.mutateAsync({ body: template });
      created.current = { content, id };
    }
    return created.current.id;
  }
  return async (values, { template, keys }, idempotencyKey) => {
    const missing = missingIn(values);
    if (missing !== null) throw notSent(missing);
    const problems = problemsIn(values);
    if (problems.length > 0) throw notSent('A field cannot be read', problems);
    const body = rentBody(
      values,
      keys,
      template === null ? undefined : await templateFor(template),
    );
    if (node === null) return bySpec.mutateAsync({ body: { ...body, ...spec }, idempotencyKey });
    return onNode.mutateAsync({ params: { executor_uuid: node.id }, body, idempotencyKey });
  };
}
