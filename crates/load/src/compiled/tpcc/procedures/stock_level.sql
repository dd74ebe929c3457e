CREATE OR REPLACE PROCEDURE tpcc_stock_level(p_w_id int, p_d_id int, p_threshold int, INOUT p_low bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_next_o_id int;
BEGIN
    SELECT d_next_o_id INTO STRICT v_next_o_id FROM district WHERE d_w_id = p_w_id AND d_id = p_d_id;
    SELECT count(DISTINCT s_i_id) INTO p_low FROM order_line JOIN stock ON s_w_id = p_w_id AND s_i_id = ol_i_id
        WHERE ol_w_id = p_w_id AND ol_d_id = p_d_id AND ol_o_id >= v_next_o_id - 20 AND ol_o_id < v_next_o_id
            AND s_quantity < p_threshold;
END $$
