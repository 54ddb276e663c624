/** Searches the market for the nodes that meet a specification. */
import type { MarketView } from '../executors/executor.service.ts';
import { createOfferFilter } from '../executors/offer-filter.ts';
import { NODE_SPEC_FIELDS, type NodeSpec } from './rent-by-spec.schemas.ts';
import { constraintsOf, type SpecConstraint } from './spec-constraints.ts';
import { HARD_STATE, matchSpec, type NoMatch, type SpecMatch } from './spec-match.ts';

/** The result includes every change of a node that was committed before the call. */
export type SpecSearch = (spec: NodeSpec) => Promise<SpecMatch | NoMatch>;

export function createSpecSearch(view: MarketView): SpecSearch {
  const filter = createOfferFilter<SpecConstraint>(HARD_STATE);
  return async (spec) => {
    const offers = await view.offers();
    const present = offers.nodes.length === 0 ? (await view.figures()).present() : 0;
    return matchSpec(present, filter(offers, constraintsOf(spec), searchKey(spec)));
  };
}

/** Equal for specifications with equal values. Requests contain more members than the specification. */
function searchKey(spec: NodeSpec): string {
  return JSON.stringify(NODE_SPEC_FIELDS.map((name) => spec[name] ?? null));
}
