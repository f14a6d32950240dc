"""The transformers are those of their publications: their parameters, and the FLOPs of a step."""

from dataclasses import replace
from math import log

import numpy
import pytest

from dlperf_study.study.configuration import Configuration
from dlperf_study.study.parallel_parameters import RECOMPUTATIONS
from dlperf_study.training import models
from dlperf_study.training.data_loaders._base import Consumer
from dlperf_study.training.data_loaders._sequences import MASK, made_up_tokens, sequence_batches
from dlperf_study.training.libraries._base import model_facts
from dlperf_study.training.libraries.torch import Torch
from dlperf_study.training.models._sequences import MASKED, SequenceModel

#: As their publishers print them, or as their released weights have them.
PUBLISHED = {
    "bert_base": 110_106_428,
    "bert_large": 336_226_108,
    "gpt2": 124_439_808,
    "gpt2_medium": 354_823_168,
    "gpt2_large": 774_030_080,
    "gpt2_xl": 1_557_611_200,
    "llama2_7b": 6_738_415_616,
    "llama2_13b": 13_015_864_320,
    "llama2_70b": 68_976_648_192,
    "llama3_8b": 8_030_261_248,
    "llama3_70b": 70_553_706_496,
    "llama3_405b": 405_853_388_800,
    "llama3_2_1b": 1_235_814_400,
    "llama3_2_3b": 3_212_749_824,
}
TINY = ("bert_tiny", "gpt_tiny", "llama_tiny")
ALL = [name for name in models.names() if isinstance(models.load(name), SequenceModel)]
#: FLOPs of a sequence of these tokens and masked positions, printed with four digits.
GIGAFLOPS = {("bert_base", 128, 20): 69.93, ("bert_base", 512, 80): 301.4, ("bert_large", 128, 20): 240.6}
LENGTH, SAMPLES = 64, 3


def configuration(name, **changes):
    masked = {"masked_positions": 20} if models.load(name).task == MASKED else {}
    values = {"sequence_length": LENGTH, "batch_per_device": SAMPLES, **masked, **changes}
    return Configuration(study="s", cluster="c", framework="torch_ddp", strategy="all_reduce", model=name, **values)


def build(name, **changes):
    return models.load(name).builder("torch")(configuration(name, **changes), 0, 1)


def batch(name, rank=0, world_size=1, step=0, **changes):
    """Return the arrays of a batch of a rank."""
    point = configuration(name, **changes)
    batches = sequence_batches(point, Consumer(rank, world_size, "torch"), made_up_tokens(point))
    for _ in range(step):
        next(batches)
    return next(batches)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_formula_gives_the_published_number_of_parameters(name):
    assert models.load(name).parameters == PUBLISHED[name]


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", ALL)
def test_the_built_network_has_as_many(name):
    import torch

    with torch.device("meta"):
        layer = build(name)
    assert sum(parameter.numel() for parameter in layer.parameters()) == models.load(name).parameters


@pytest.mark.needs("torch")
@pytest.mark.parametrize("activation_checkpointing", RECOMPUTATIONS)
@pytest.mark.parametrize("name", TINY)
def test_a_step_does_the_declared_flops_and_gives_every_parameter_a_gradient(name, activation_checkpointing):
    """The counter does not know the fused attention of CPUs, and would count none of it."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    requested = configuration(name, activation_checkpointing=activation_checkpointing)
    layer, arrays = Torch(requested).built(0, 1), map(torch.from_numpy, batch(name))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        loss = layer(*arrays)
        loss.backward()
    facts = model_facts(requested)
    declared = SAMPLES * facts.get("hardware_flops_per_sample", facts["flops_per_sample"])
    assert counter.get_total_flops() == pytest.approx(declared, rel=1e-6)
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters())


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", TINY)
def test_an_untrained_network_guesses(name):
    """So its loss is that of equal chances for each token, and of two for the next sentence."""
    import torch

    torch.manual_seed(0)
    loss = build(name)(*map(torch.from_numpy, batch(name))).item()
    chances = log(models.load(name).sizes.vocabulary) + (log(2) if name == "bert_tiny" else 0)
    assert loss == pytest.approx(chances, rel=0.02)


@pytest.mark.parametrize(("name", "length", "masked"), GIGAFLOPS)
def test_flops_are_those_of_the_publications(name, length, masked):
    flops = models.load(name).flops(configuration(name, sequence_length=length, masked_positions=masked))
    assert flops / 1e9 == pytest.approx(GIGAFLOPS[name, length, masked], rel=1e-3)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", ["gpt_tiny", "llama_tiny"])
def test_no_token_sees_a_later_one(name):
    import torch

    torch.manual_seed(0)
    network, tokens = build(name).network, torch.from_numpy(batch(name)[0])
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 512
    logits, logits_of_changed = network(tokens), network(changed)
    assert torch.allclose(logits[:, :-1], logits_of_changed[:, :-1], atol=1e-6)
    assert not torch.allclose(logits[:, -1], logits_of_changed[:, -1], atol=1e-3)


@pytest.mark.needs("torch")
def test_rotated_positions_see_distances_alone():
    """The product of a query and a key is the same wherever both are, and another one at another distance."""
    import torch

    from dlperf_study.training.models._torch_transformer import _rotated, _rotations

    torch.manual_seed(0)
    tables = _rotations(models.load("llama_tiny").sizes, LENGTH)
    query, key = torch.randn(2, 1, 1, 1, 8).expand(2, 1, 1, LENGTH, 8)
    products = (_rotated(query, *tables) @ _rotated(key, *tables).transpose(-1, -2))[0, 0]
    for distance in (0, 1, 17):
        diagonal = products.diagonal(distance)
        assert torch.allclose(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-5)
    assert not torch.allclose(products[0, 0], products[0, 17], atol=1e-3)


@pytest.mark.parametrize("name", TINY)
def test_the_global_batch_is_the_same_however_many_ranks_share_it(name):
    alone = batch(name, step=2, batch_per_device=6)
    parts = [batch(name, rank, 2, step=2) for rank in range(2)]
    for whole, *shares in zip(alone, *parts, strict=True):
        assert numpy.array_equal(numpy.stack(shares, axis=1).reshape(whole.shape), whole)
    assert not numpy.array_equal(alone[0], batch(name, step=3, batch_per_device=6)[0])
    assert not numpy.array_equal(alone[0], batch(name, step=2, batch_per_device=6, seed=1)[0])


def test_masked_tokens_are_the_labels_and_a_mask_takes_their_place():
    tokens, positions, labels, is_next = batch("bert_tiny")
    unmasked, *_ = batch("bert_tiny", masked_positions=1)
    assert positions.shape == labels.shape == (SAMPLES, 20)
    for row in range(SAMPLES):
        assert len(set(positions[row])) == 20
        assert (tokens[row, positions[row]] == MASK).all()
        assert (tokens[row] != MASK).sum() >= LENGTH - 20 - 5
        differing = numpy.flatnonzero(tokens[row] != unmasked[row])
        assert {*differing} <= {*positions[row]}
    assert {*is_next} <= {0, 1}


def test_a_target_is_the_next_token():
    tokens, targets = batch("gpt_tiny")
    assert tokens.shape == targets.shape == (SAMPLES, LENGTH)
    assert numpy.array_equal(tokens[:, 1:], targets[:, :-1])


def test_what_a_configuration_of_sequences_has_nothing_of_is_unstated():
    shown = configuration("gpt_tiny").displayed_values()
    assert shown["sequence_length"] == LENGTH
    assert shown["image_size"] is shown["classes"] is shown["memory_format"] is None
    images = replace(configuration("gpt_tiny"), model="resnet50", sequence_length=0).displayed_values()
    assert images["sequence_length"] is images["masked_positions"] is None
    assert images["image_size"] == 224
