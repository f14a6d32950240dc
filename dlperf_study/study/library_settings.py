"""The variables by which libraries are set, as their documentation or their source names them.

Evidence has these with their values, and of any other variable its name alone: ``NCCL_COOKIE`` may be anything.
"""

_NAMES = {
    "CUDA_": """
        AUTO_BOOST BINARY_LOADER_THREAD_COUNT CACHE_DISABLE CACHE_MAXSIZE CACHE_PATH
        DEVICE_DEFAULT_PERSISTING_L2_CACHE_PERCENTAGE_LIMIT DEVICE_MAX_CONNECTIONS DEVICE_ORDER
        DEVICE_WAITS_ON_EXCEPTION DISABLE_PTX_JIT FORCE_PRELOAD_LIBRARIES FORCE_PTX_JIT HOME LAUNCH_BLOCKING
        MANAGED_FORCE_DEVICE_ALLOC MODULE_DATA_LOADING MODULE_LOADING MPS_ACTIVE_THREAD_PERCENTAGE MPS_LOG_DIRECTORY
        MPS_PINNED_DEVICE_MEM_LIMIT MPS_PIPE_DIRECTORY PATH SCALE_LAUNCH_QUEUES VISIBLE_DEVICES
    """,
    "FLAGS_": """
        accuracy_check_atol_bf16 accuracy_check_atol_fp16 accuracy_check_atol_fp32 accuracy_check_rtol_bf16
        accuracy_check_rtol_fp16 accuracy_check_rtol_fp32 add_dependency_for_communication_op all_blocks_convert_trt
        alloc_fill_value allocator_strategy allreduce_record_one_event apply_pass_to_program async_trace_count
        auto_free_cudagraph_allocations_on_launch auto_growth_chunk_size_in_mb benchmark cache_inference_while_scope
        call_stack_level check_infer_symbolic check_nan_inf check_nan_inf_level communicator_is_sgd_optimizer
        communicator_max_merge_var_num communicator_send_queue_size comp_skip_default_ops convert_all_blocks
        cse_max_count cublas_dir cublaslt_device_best_config cuda_core_int8_gemm cuda_dir
        cuda_malloc_async_pool_memory_throttle_ratio cudnn_dir cupti_dir curand_dir cusolver_dir cusparse_dir
        cusparselt_dir dataloader_use_file_descriptor disable_dyshape_in_train disable_logging_op_attr_list
        dist_threadpool_size dump_chunk_info dygraph_debug dynamic_static_unified_comm
        eager_communication_connection eager_delete_scope eager_delete_tensor_gb einsum_opt enable_adjust_op_order
        enable_all2all_use_fp16 enable_api_kernel_fallback enable_append_iters_in_fusion enable_async_trace
        enable_auto_detect_gpu_topo enable_auto_layout_pass enable_auto_parallel_align_mode enable_auto_rdma_trans
        enable_blaslt_global_search enable_cinn_accuracy_check enable_collect_shape enable_cse_in_dy2st
        enable_custom_engine enable_dependency_builder_debug_info enable_dump_main_program
        enable_exit_when_partial_worker enable_fuse_parallel_matmul_pass enable_fusion_fallback
        enable_fusion_result_check enable_graph_multi_node_sampling enable_neighbor_list_use_uva
        enable_opt_get_features enable_pir_api enable_pir_in_executor enable_pir_in_executor_trace_run
        enable_pir_with_pt_in_dy2st enable_record_memory enable_reuse_iters_in_fusion enable_sparse_inner_gather
        enable_tracker_all2all enable_transpose_iters_in_fusion enable_unused_var_check
        executor_log_deps_every_microseconds fast_eager_deletion_mode flagcx_dir force_sync_ops
        fraction_of_cpu_memory_to_use fraction_of_cuda_pinned_memory_to_use fraction_of_gpu_memory_to_use
        free_idle_chunk free_when_no_cache_hit fuse_parameter_groups_size fuse_parameter_memory_size
        fused_multi_transformer_op_use_mbfmha get_host_by_name_time gpu_allocator_retry_time gpu_memory_limit_mb
        gpugraph_debug_gpu_memory gpugraph_dedup_pull_push_mode gpugraph_enable_gpu_direct_access
        gpugraph_enable_hbm_table_collision_stat gpugraph_enable_print_op_debug gpugraph_enable_segment_merge_grads
        gpugraph_force_device_batch_num_equal gpugraph_hbm_table_load_factor gpugraph_load_node_list_into_hbm
        gpugraph_merge_grads_segment_size gpugraph_offload_gather_copy_maxsize gpugraph_offload_param_extends
        gpugraph_offload_param_stat gpugraph_parallel_copyer_split_maxsize gpugraph_parallel_stream_num
        gpugraph_slot_feasign_max_num gpugraph_sparse_table_storage_mode gpugraph_storage_mode
        graph_edges_debug_node_id graph_edges_debug_node_num graph_edges_split_debug graph_edges_split_mode
        graph_edges_split_only_by_src_id graph_embedding_split_infer_mode graph_get_neighbor_id
        graph_load_in_parallel graph_metapath_split_opt graph_neighbor_size_percent host_trace_level
        init_allocated_mem initial_cpu_memory_in_mb initial_gpu_memory_in_mb inner_op_parallelism
        ir_inplace_kernel_blacklist jit_engine_type lapack_dir local_exe_sub_scope_limit log_memory_stats
        logging_pir_py_code_dir logging_pir_py_code_dump_symbolic_dims logging_pir_py_code_int_tensor_element_limit
        logging_trunc_pir_py_code low_precision_op_list manually_trans_conv_filter max_inplace_grad_add
        memory_fraction_of_eager_deletion mkl_dir mklml_dir multi_block_attention_min_partition_size
        multi_node_sample_use_gpu_table multiple_of_cupti_buffer_size nccl_dir new_executor_sequential_run
        new_executor_serial_run new_executor_static_build new_executor_use_cuda_graph new_executor_use_inplace
        new_executor_use_local_scope npu_storage_format nvidia_package_dir op_dir paddle_num_threads
        pinned_memory_as_cpu_backend pir_apply_inplace_pass pir_broadcast_tree_limit
        pir_interpreter_record_stream_for_gc_cache prim_all prim_backward prim_check_ops prim_enable_dynamic
        prim_enabled prim_forward prim_forward_blacklist prim_skip_dynamic print_allocator_trace_info print_ir
        print_kernel_run_info print_sub_graph_dir query_dest_rank_by_multi_node reader_queue_speed_test_mode
        reallocate_gpu_memory_in_mb rocksdb_path rpc_send_thread_num run_kp_kernel save_cf_stack_op
        save_static_runtime_data search_cache_max_number set_to_1d sort_sum_gradient
        static_executor_perfstat_filepath static_runtime_data_save_path sync_after_alloc tcp_max_syn_backlog
        tensor_operants_mode tensorrt_dir tracer_onednn_ops_off tracer_onednn_ops_on tracer_profile_fname
        trt_ibuilder_cache trt_min_group_size use_auto_growth_pinned_allocator use_auto_growth_v2 use_autotune
        use_cuda_malloc_async_allocator use_cuda_managed_memory use_mkldnn use_pinned_memory use_shm_cache
        use_stream_safe_cuda_allocator use_stride_kernel use_system_allocator use_virtual_memory_auto_growth
        use_xqa_optim win_cuda_bin_dir
    """,
    "GLOG_": """
        alsologtostderr colorlogtostderr log_dir logbufsecs logtostderr max_log_size minloglevel stderrthreshold v
        vmodule
    """,
    "GLOO_": """
        DEVICE_TRANSPORT SOCKET_IFNAME
    """,
    "HOROVOD_": """
        ADASUM_MPI_CHUNK_SIZE ALLOW_MIXED_GPU_IMPL AUTOTUNE AUTOTUNE_BAYES_OPT_MAX_SAMPLES
        AUTOTUNE_GAUSSIAN_PROCESS_NOISE AUTOTUNE_LOG AUTOTUNE_STEPS_PER_SAMPLE AUTOTUNE_WARMUP_SAMPLES
        BATCH_D2D_MEMCOPIES BUILD_ARCH_FLAGS BUILD_CUDA_CC_LIST CACHE_CAPACITY CCL CCL_CACHE CMAKE CONTROLLER
        CONTROLLER_DEFAULT CPU_OPERATIONS CPU_OPERATIONS_DEFAULT CROSS_RANK CROSS_SIZE CUDA_HOME CYCLE_TIME DEBUG
        DISABLE_GROUP_FUSION DISABLE_NVTX_RANGES DYNAMIC_PROCESS_SETS ELASTIC ELASTIC_TIMEOUT
        ENABLE_ASYNC_COMPLETION ENABLE_XLA_OPS FUSION_THRESHOLD GLOO GLOO_IFACE GLOO_RENDEZVOUS_ADDR
        GLOO_RENDEZVOUS_PORT GLOO_TIMEOUT_SECONDS GPU GPU_ALLGATHER GPU_ALLREDUCE GPU_ALLTOALL GPU_BROADCAST
        GPU_OPERATIONS GPU_REDUCESCATTER HIERARCHICAL_ALLGATHER HIERARCHICAL_ALLREDUCE HOSTNAME LOCAL_RANK
        LOCAL_SIZE LOG_HIDE_TIME LOG_LEVEL MPI MPI_THREADS_DISABLE NCCL_HOME NCCL_INCLUDE NCCL_LIB NCCL_LINK
        NUM_NCCL_STREAMS RANK ROCM_HOME SIZE SPARK_START_TIMEOUT SPARK_USE_LOCAL_RANK_GPU_INDEX STALL_CHECK_DISABLE
        STALL_CHECK_TIME_SECONDS STALL_SHUTDOWN_TIME_SECONDS START_TIMEOUT THREAD_AFFINITY TIMELINE
        TIMELINE_MARK_CYCLES TORUS_ALLREDUCE WITHOUT_GLOO WITHOUT_MPI WITHOUT_MXNET WITHOUT_PYTORCH
        WITHOUT_TENSORFLOW WITH_GLOO WITH_MPI WITH_MXNET WITH_PYTORCH WITH_TENSORFLOW
    """,
    "KMP_": """
        AFFINITY ALL_THREADS BLOCKTIME DETERMINISTIC_REDUCTION DUPLICATE_LIB_OK FORCE_REDUCTION HW_SUBSET
        INIT_AT_FORK LIBRARY SETTINGS STACKSIZE TEAMS_THREAD_LIMIT TPAUSE USER_LEVEL_MWAIT VERSION WARNINGS
    """,
    "MKL_": """
        CBWR DEBUG_CPU_TYPE DISABLE_FAST_MM DOMAIN_NUM_THREADS DYNAMIC ENABLE_INSTRUCTIONS FAST_MEMORY_LIMIT
        INTERFACE_LAYER NUM_STRIPES NUM_THREADS SERVICE_FORCE_INTEL THREADING_LAYER VERBOSE
    """,
    "NCCL_": """
        ALGO ALLGATHERV_ENABLE ALLOC_P2P_NET_LL_BUFFERS ASYNC_ERROR_HANDLING BLOCKING_WAIT BUFFSIZE CGA_CLUSTER_SIZE
        CHECK_MODE CHECK_POINTERS CHUNK_SIZE COLLNET_ENABLE COLLNET_NODE_THRESHOLD COMM_BLOCKING COMM_ID
        COMM_SHRINK_SHARE_RESOURCES COMM_SPLIT_SHARE_RESOURCES CONF_FILE CONNECT_ROUND_MAX_PEERS CROSS_NIC
        CTA_POLICY CUMEM_ENABLE CUMEM_HOST_ENABLE DEBUG DEBUG_FILE DEBUG_SUBSYS DEV_API_JIT DISABLE_MEM_MANAGER
        DMABUF_ENABLE ELASTIC_BUFFER_REGISTER ENABLE_VERSION_CHECK ENV_PLUGIN GDAKI_USE_RELIABLE_DB GDRCOPY_ENABLE
        GDRCOPY_FIFO_ENABLE GDRCOPY_FLUSH_ENABLE GDRCOPY_SYNC_ENABLE GDR_FLUSH_DISABLE GIN_ENABLE
        GIN_ERROR_QUERY_SEC GIN_GDAKI_MAX_DEST_RD_ATOMIC GIN_GDAKI_MAX_QP_RD_ATOMIC GIN_GDAKI_NIC_HANDLER
        GIN_GDAKI_QP_DEPTH GIN_IB_TC GIN_NCONNECTIONS GIN_PLUGIN GIN_PLUGIN_REF_COUNT GIN_PROXY_QUEUE_SIZE GIN_TYPE
        GRAPH_DUMP_FILE GRAPH_DUMP_FILE_RANK GRAPH_FILE GRAPH_HELPER_DISABLE GRAPH_MIXING_SUPPORT GRAPH_REGISTER
        GRAPH_STREAM_ORDERING GROUP_CUDA_STREAM HOSTID IBVERBS_LIB IB_ADAPTIVE_ROUTING IB_ADDR_FAMILY IB_ADDR_RANGE
        IB_AR_THRESHOLD IB_DATA_DIRECT IB_DEVICE_PCI_ORDER IB_DISABLE IB_ECE_ENABLE IB_FIFO_TC IB_GID_INDEX IB_HCA
        IB_MERGE_NICS IB_MERGE_VFS IB_MQP_RETRY_ALL IB_MQP_RETRY_CNT IB_MQP_RETRY_SLEEP_MSEC IB_OOO_RQ
        IB_PCI_RELAXED_ORDERING IB_PKEY IB_PREPOST_RECEIVE_WORK_REQUESTS IB_QPS_PER_CONNECTION IB_QUERY_PORT_SPEED
        IB_RECEIVER_SIDE_MATCHING_SCHEME IB_RESILIENCY_PORT_FAILOVER IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS
        IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY IB_RESILIENCY_PORT_RECOVERY IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT
        IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE
        IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT
        IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX IB_RESILIENCY_PORT_RECOVERY_START_DELAY IB_RETRY_CNT
        IB_RETURN_ASYNC_EVENTS IB_ROCE_VERSION_NUM IB_ROUTABLE_FLID_GID_INDEX IB_SL IB_SPLIT_DATA_ON_QPS
        IB_SUBNET_AWARE_ROUTING IB_SUBNET_PREFIX_LEN IB_TC IB_TIMEOUT IB_USE_INLINE IB_WARN_RAIL_LOCAL
        IGNORE_COLLNET_MISMATCH IGNORE_CPU_AFFINITY IGNORE_DISABLED_P2P IGNORE_NET_MISMATCH IPC_USE_ABSTRACT_SOCKET
        L1_SHARED_MEMORY_CARVEOUT LAUNCH_MODE LAUNCH_ORDER_IMPLICIT LAUNCH_RACE_FATAL LEGACY_CUDA_REGISTER
        LL128_BUFFSIZE LL128_C2C LL128_NTHREADS LL_BUFFSIZE LL_THRESHOLD LOCAL_REGISTER LSA_TEAM_SIZE MAX_CTAS
        MAX_NCHANNELS MAX_NRINGS MAX_P2P_NCHANNELS MEM_SYNC_DOMAIN MIN_CTAS MIN_NCHANNELS MIN_NRINGS
        MIN_P2P_NCHANNELS MLOPART_RDMA_ENABLE MNNVL_CLIQUE_ID MNNVL_CROSS_CLIQUE MNNVL_ENABLE MNNVL_RAIL_PER_HOST
        MNNVL_SCATTER_NETS_ENABLE MNNVL_UUID MULTI_RANK_GPU_ENABLE MULTI_SEGMENT_REGISTER NCHANNELS_PER_NET_PEER NET
        NETDEVS_POLICY NET_DISABLE_INTRA NET_FORCE_FLUSH NET_FORCE_MERGE NET_GDR_C2C NET_GDR_MLOPART NET_GDR_READ
        NET_MERGE_LEVEL NET_MERGE_POLICY NET_OPTIONAL_RECV_COMPLETION NET_OVERHEAD NET_PLUGIN NET_PLUGIN_REF_COUNT
        NET_SHARED_BUFFERS NET_SHARED_COMMS NSOCKS_PERTHREAD NTHREADS NUM_RMA_CTX NVB_DISABLE NVB_PRECONNECT
        NVLINK_UTIL_CENTRIC_SCHED_ENABLE NVLSTREE_MAX_CHUNKSIZE NVLS_CHUNKSIZE NVLS_ENABLE NVLS_NCHANNELS
        NVTX_DISABLE OOB_NET_ENABLE OOB_NET_IFNAME P2P_DIRECT_DISABLE P2P_EPOCH_ENABLE P2P_LEVEL P2P_LL_THRESHOLD
        P2P_MAX_PEERS P2P_NET_CHUNKSIZE P2P_NVL_CHUNKSIZE P2P_PCI_CHUNKSIZE P2P_PER_CHANNEL_NET_BW P2P_PXN_LEVEL
        P2P_READ_ENABLE P2P_SCHEDULE_GROUP_SIZE P2P_USE_CUDA_MEMCPY PAT_ENABLE PROFILER_PLUGIN
        PROGRESS_APPENDOP_FREQ PROTO PROXY_APPEND_BATCH_SIZE PROXY_CPUSET PROXY_DUMP_SIGNAL PXN_C2C PXN_DISABLE
        RAS_ADDR RAS_ENABLE RAS_TIMEOUT_FACTOR REPORT_CONNECT_PROGRESS RINGS RMA_DISABLE RMA_PLUGIN
        RMA_PLUGIN_REF_COUNT RMA_PROXY_DUMP_SIGNAL RMA_PROXY_QUEUE_SIZE RUNTIME_CONNECT SET_CPU_STACK_SIZE
        SET_STACK_SIZE SHADOW_MEMPOOL_MAX_SIZE SHM_DISABLE SHM_LOCALITY SINGLE_PROC_MEM_REG_ENABLE SOCKET_FAMILY
        SOCKET_IFNAME SOCKET_INLINE SOCKET_MAGIC SOCKET_MIN_TASKSIZE SOCKET_NTHREADS SOCKET_POLL_TIMEOUT_MSEC
        SOCKET_RCVBUF SOCKET_RETRY_CNT SOCKET_RETRY_SLEEP_MSEC SOCKET_SNDBUF SYM_CE_THRESHOLD SYM_CTAS
        SYM_GIN_KERNELS_ENABLE SYM_KERNEL SYM_NOWIN_ENABLE SYM_REUSE_SYSMEM_HANDLES SYM_RS_GIN_CHUNK_SIZE
        SYM_TMA_ENABLE THREAD_THRESHOLDS TOPO_DUMP_FILE TOPO_DUMP_FILE_RANK TOPO_FILE TOPO_SPLIT_MLOPART
        TREE_THRESHOLD TUNER_PLUGIN UID_STAGGER_RATE UID_STAGGER_THRESHOLD UNPACK_DOUBLE_NCHANNELS WIN_ENABLE
        WIN_STRIDE WORK_ARGS_BYTES WORK_FIFO_BYTES
    """,
    "OMP_": """
        AFFINITY_FORMAT ALLOCATOR CANCELLATION DEBUG DEFAULT_DEVICE DISPLAY_AFFINITY DISPLAY_ENV DYNAMIC
        MAX_ACTIVE_LEVELS MAX_TASK_PRIORITY NESTED NUM_TEAMS NUM_THREADS PLACES PROC_BIND SCHEDULE STACKSIZE
        TARGET_OFFLOAD TEAMS_THREAD_LIMIT THREAD_LIMIT TOOL TOOL_LIBRARIES WAIT_POLICY
    """,
    "TF_": """
        CPP_LOG_THREAD_ID CPP_MAX_VLOG_LEVEL CPP_MIN_LOG_LEVEL CPP_MIN_VLOG_LEVEL CPP_VLOG_FILENAME CPP_VMODULE
        ENABLE_AUTO_MIXED_PRECISION ENABLE_CUBLAS_TENSOR_OP_MATH_FP32 ENABLE_CUDNN_RNN_TENSOR_OP_MATH_FP32
        ENABLE_CUDNN_TENSOR_OP_MATH_FP32 ENABLE_GPU_GARBAGE_COLLECTION ENABLE_LAYOUT_NHWC ENABLE_NHWC
        ENABLE_ONEDNN_OPTS ENABLE_WINOGRAD_NONFUSED ENABLE_XLA XLA_FLAGS
    """,
    "XLA_": """
        FLAGS PYTHON_CLIENT_ALLOCATOR PYTHON_CLIENT_MEM_FRACTION PYTHON_CLIENT_PREALLOCATE
    """,
}
#: NCCL's are those of 2.30, Horovod's of 0.28.1, Paddle's of 3.0.0.
KNOWN_SETTINGS = frozenset(prefix + rest for prefix, names in _NAMES.items() for rest in names.split())
